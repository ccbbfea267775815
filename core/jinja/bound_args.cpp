#include "core/jinja/bound_args.h"

#include <fmt/format.h>

#include <algorithm>

namespace minfer::jinja {

BoundArgs::BoundArgs(Runtime& runtime, std::string_view callee, const Args& args,
                     std::initializer_list<std::string_view> names, size_t n_required)
    : runtime_(runtime), callee_(callee) {
  std::copy(names.begin(), names.end(), names_.begin());
  if (args.positional.size() > names.size()) {
    runtime.fail(fmt::format("{} takes at most {} argument(s), {} given", callee, names.size(),
                             args.positional.size()));
  }
  for (size_t i = 0; i < args.positional.size(); ++i) {
    values_[i] = args.positional[i];
    is_given_[i] = true;
  }
  for (const NamedValue& argument : args.named) {
    const auto i = static_cast<size_t>(std::find(names.begin(), names.end(), argument.name) - names.begin());
    if (i == names.size()) runtime.fail(fmt::format("{} has no parameter '{}'", callee, argument.name));
    if (is_given_[i]) runtime.fail(fmt::format("{} got '{}' twice", callee, argument.name));
    values_[i] = argument.value;
    is_given_[i] = true;
  }
  for (size_t i = 0; i < n_required; ++i) {
    if (!is_given_[i]) runtime.fail(fmt::format("{} needs its argument '{}'", callee, names_[i]));
  }
}

void BoundArgs::fail_type(size_t i, std::string_view expected) const {
  if (values_[i].is_undefined()) fail_undefined(runtime_, values_[i]);
  runtime_.fail(
      fmt::format("{}: '{}' must be {}, not {}", callee_, names_[i], expected, type_name(values_[i])));
}

const Text& BoundArgs::text(size_t i) const {
  if (!values_[i].is_text()) fail_type(i, "a string");
  return values_[i].as_text();
}

std::string_view BoundArgs::text_or(size_t i, std::string_view fallback) const {
  return is_given_[i] && !values_[i].is_none() ? text(i).bytes : fallback;
}

int64_t BoundArgs::integer(size_t i) const {
  if (!values_[i].is_integral()) fail_type(i, "an integer");
  return values_[i].as_int();
}

int64_t BoundArgs::integer_or(size_t i, int64_t fallback) const {
  return is_given_[i] && !values_[i].is_none() ? integer(i) : fallback;
}

}  // namespace minfer::jinja
