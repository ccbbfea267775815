// The functions that a template finds beside its variables.
#include <fmt/format.h>

#include <array>

#include "core/jinja/bound_args.h"
#include "core/jinja/callable.h"
#include "core/jinja/strftime.h"

namespace minfer::jinja {
namespace {

constexpr size_t kMaxRange = 100'000;  // Jinja2's, in its sandbox

Value range(Runtime& runtime, const Args& args) {
  const BoundArgs bound(runtime, "range()", args, {"start", "stop", "step"}, 1);
  const int64_t start = bound.has(1) ? bound.integer(0) : 0;
  const int64_t stop = bound.has(1) ? bound.integer(1) : bound.integer(0);
  const int64_t step = bound.integer_or(2, 1);
  if (step == 0) runtime.fail("range() by steps of zero");
  List* list = runtime.new_list();
  int64_t at = start;
  while (step > 0 ? at < stop : at > stop) {
    runtime.step();
    if (list->items.size() == kMaxRange)
      runtime.fail(fmt::format("a range of more than {} numbers", kMaxRange));
    runtime.append(*list, Value::integer(at));
    if (__builtin_add_overflow(at, step, &at)) break;
  }
  return Value::list(list);
}

// Of namespace() and dict(): a mapping or pairs, then keywords.
Dict* new_mapping(Runtime& runtime, const Args& args, std::string_view callee) {
  if (args.positional.size() > 1)
    runtime.fail(fmt::format("{} takes at most one positional argument", callee));
  Dict* dict = runtime.new_dict();
  if (!args.positional.empty()) update_dict(runtime, *dict, args.positional[0]);
  for (const NamedValue& argument : args.named) runtime.set(*dict, argument.name, argument.value);
  return dict;
}

Value dict(Runtime& runtime, const Args& args) {
  return Value::dict(new_mapping(runtime, args, "dict()"));
}

Value name_space(Runtime& runtime, const Args& args) {
  return Value::name_space(new_mapping(runtime, args, "namespace()"));
}

Value raise_exception(Runtime& runtime, const Args& args) {
  const BoundArgs bound(runtime, "raise_exception()", args, {"message"}, 1);
  runtime.raise(std::string(to_text(runtime, bound[0])->bytes));
}

Value strftime_now(Runtime& runtime, const Args& args) {
  const BoundArgs bound(runtime, "strftime_now()", args, {"format"}, 1);
  const std::string_view format = bound.text(0).bytes;
  runtime.scan(format.size() * 16);
  runtime.check_text_size(format.size() * 16);  // more than any conversion makes of two bytes
  auto formatted = format_time(format, runtime.now());
  if (!formatted)
    runtime.fail(fmt::format("strftime_now: unknown conversion in {}", quoted(format.substr(0, 100))));
  return runtime.text(std::move(*formatted));
}

// A function of `state` and no arguments.
Value bound_function(Runtime& runtime, std::string_view name, Method method, const Value& state) {
  auto* callable = runtime.make<Callable>();
  callable->name = name;
  callable->method = method;
  callable->self = state;
  return Value::callable(callable);
}

// Nothing at its first call, the separator at each later one.
Value next_separator(Runtime& runtime, const Value& self, const Args& args) {
  const BoundArgs bound(runtime, "joiner", args, {});
  auto& state = self.as_list().items;
  const bool is_first = std::exchange(state[1], Value::boolean(true)).is_none();
  return is_first ? Value::text(runtime.view("")) : state[0];
}

Value joiner(Runtime& runtime, const Args& args) {
  const BoundArgs bound(runtime, "joiner()", args, {"sep"});
  const Value separator = bound.has(0) ? bound[0] : Value::text(runtime.view(", "));
  return bound_function(runtime, "joiner", next_separator, runtime.tuple({separator, Value()}));
}

// A cycler's state is apart from the namespace that the template sees, which it may change.
struct CyclerState {
  enum Index { kItems, kPosition, kShown };
};

void show_current(Runtime& runtime, List& state, int64_t position) {
  const auto& items = state.items[CyclerState::kItems].as_list().items;
  state.items[CyclerState::kPosition] = Value::integer(position);
  runtime.set(state.items[CyclerState::kShown].as_dict(), "current", items[static_cast<size_t>(position)]);
}

Value cycler_next(Runtime& runtime, const Value& self, const Args& args) {
  const BoundArgs bound(runtime, "cycler.next()", args, {});
  List& state = self.as_list();
  const auto& items = state.items[CyclerState::kItems].as_list().items;
  const int64_t position = state.items[CyclerState::kPosition].as_int();
  show_current(runtime, state, (position + 1) % static_cast<int64_t>(items.size()));
  return items[static_cast<size_t>(position)];
}

Value cycler_reset(Runtime& runtime, const Value& self, const Args& args) {
  const BoundArgs bound(runtime, "cycler.reset()", args, {});
  show_current(runtime, self.as_list(), 0);
  return {};
}

Value cycler(Runtime& runtime, const Args& args) {
  if (args.positional.empty() || !args.named.empty()) runtime.fail("cycler() takes at least one item");
  Dict* shown = runtime.new_dict();
  List* items = runtime.new_list({args.positional.begin(), args.positional.end()});
  const Value state = runtime.tuple({Value::tuple(items), Value::integer(0), Value::name_space(shown)});
  runtime.set(*shown, "next", bound_function(runtime, "next", cycler_next, state));
  runtime.set(*shown, "reset", bound_function(runtime, "reset", cycler_reset, state));
  show_current(runtime, state.as_list(), 0);
  return Value::name_space(shown);
}

struct NamedFunction {
  std::string_view name;
  Function function;
};
constexpr std::array<NamedFunction, 7> kFunctions = {{
    {"range", range},
    {"dict", dict},
    {"namespace", name_space},
    {"raise_exception", raise_exception},
    {"strftime_now", strftime_now},
    {"joiner", joiner},
    {"cycler", cycler},
}};

}  // namespace

Function find_function(std::string_view name) {
  for (const NamedFunction& each : kFunctions) {
    if (each.name == name) return each.function;
  }
  return nullptr;
}

}  // namespace minfer::jinja
