// Filters that apply another filter or a test to every item.
#include <fmt/format.h>

#include <algorithm>

#include "core/jinja/bound_args.h"
#include "core/jinja/filters.h"

namespace minfer::jinja {
namespace {

using Rt = Runtime;  // in every signature below

std::string_view name_argument(Rt& rt, const Args& args, std::string_view what) {
  if (args.positional.empty()) rt.fail(fmt::format("missing the name of a {}", what));
  if (!args.positional[0].is_text()) {
    rt.fail(fmt::format("the name of a {} must be a string, not {}", what, type_name(args.positional[0])));
  }
  return args.positional[0].as_text().bytes;
}

Args without_first(const Args& args, size_t n) {
  return {args.positional.subspan(std::min(n, args.positional.size())), args.named};
}

// map(attribute=..., default=...) or map('filter', arguments...).
Value map(Rt& rt, const Value& input, const Args& args) {
  List* mapped = rt.new_list();
  if (args.positional.empty() && !args.named.empty()) {
    const BoundArgs bound(rt, "map", args, {"attribute", "default"}, 1);
    for (const Value& item : iterate(rt, input)) {
      rt.append(*mapped, get_path(rt, item, bound[0], bound[1]));
    }
    return Value::list(mapped);
  }
  const std::string_view name = name_argument(rt, args, "filter");
  const Filter filter = find_filter(name);
  if (!filter) rt.fail(fmt::format("no filter named {}", quoted(name.substr(0, 100))));
  const Runtime::FilterLevel level(rt);
  for (const Value& item : iterate(rt, input)) rt.append(*mapped, filter(rt, item, without_first(args, 1)));
  return Value::list(mapped);
}

// The test that arguments name, from `first` on; truth where they name none.
bool passes(Rt& rt, const Value& value, const Args& args, size_t first) {
  const Args rest = without_first(args, first);
  if (rest.positional.empty()) return truthy(value);
  const std::string_view name = name_argument(rt, rest, "test");
  const Test test = find_test(name);
  if (!test) rt.fail(fmt::format("no test named {}", quoted(name.substr(0, 100))));
  const Runtime::FilterLevel level(rt);
  return test(rt, value, without_first(rest, 1));
}

template <bool keeps>
Value select(Rt& rt, const Value& input, const Args& args) {
  std::vector<Value> kept;
  for (const Value& item : iterate(rt, input)) {
    if (passes(rt, item, args, 0) == keeps) kept.push_back(item);
  }
  return Value::list(rt.new_list(std::move(kept)));
}

template <bool keeps>
Value select_attribute(Rt& rt, const Value& input, const Args& args) {
  if (args.positional.empty()) rt.fail("missing parameter for the attribute's name");
  std::vector<Value> kept;
  for (const Value& item : iterate(rt, input)) {
    if (passes(rt, get_path(rt, item, args.positional[0]), args, 1) == keeps) kept.push_back(item);
  }
  return Value::list(rt.new_list(std::move(kept)));
}

}  // namespace

std::span<const NamedFilter> selection_filters() {
  static constexpr NamedFilter kFilters[] = {
      {"map", map},
      {"reject", select<false>},
      {"rejectattr", select_attribute<false>},
      {"select", select<true>},
      {"selectattr", select_attribute<true>},
  };
  return kFilters;
}

Filter find_filter(std::string_view name) {
  for (const auto& filters : {text_filters(), sequence_filters(), number_filters(), selection_filters()}) {
    const auto found =
        std::lower_bound(filters.begin(), filters.end(), name,
                         [](const NamedFilter& each, std::string_view n) { return each.name < n; });
    if (found != filters.end() && found->name == name) return found->filter;
  }
  return nullptr;
}

}  // namespace minfer::jinja
