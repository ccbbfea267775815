// Tests: x is even.
#include <fmt/format.h>

#include <algorithm>

#include "core/jinja/bound_args.h"
#include "core/jinja/callable.h"
#include "core/jinja/text_operations.h"

namespace minfer::jinja {
namespace {

using Rt = Runtime;  // in every signature below

// A test without arguments.
template <bool (*function)(const Value&)>
bool simple(Rt& rt, const Value& input, const Args& args) {
  const BoundArgs bound(rt, "this test", args, {});
  return function(input);
}

template <Kind kind>
bool is_kind(const Value& value) {
  return value.is(kind);
}

template <bool truth>
bool is_boolean_of(const Value& value) {
  return value.is(Kind::kBool) && value.as_bool() == truth;
}

bool is_defined(const Value& value) {
  return !value.is_undefined();
}

bool is_number(const Value& value) {
  return value.is_number();
}

bool is_sequence(const Value& value) {
  return length(value) && !value.is(Kind::kLoop);
}

bool is_iterable(const Value& value) {
  return length(value).has_value();
}

bool is_callable(const Value& value) {
  return value.is(Kind::kCallable) || value.is(Kind::kLoop) || value.is_undefined();
}

bool never(const Value&) {
  return false;
}

template <CompareOp op>
bool compares(Rt& rt, const Value& input, const Args& args) {
  const BoundArgs bound(rt, "this test", args, {"other"}, 1);
  return compare(rt, op, input, bound[0]);
}

bool is_divisible(Rt& rt, const Value& input, const Value& by) {
  return equal(rt, arithmetic(rt, ArithmeticOp::kModulo, input, by), Value::integer(0));
}

bool is_even(Rt& rt, const Value& input, const Args& args) {
  const BoundArgs bound(rt, "even", args, {});
  return is_divisible(rt, input, Value::integer(2));
}

bool is_odd(Rt& rt, const Value& input, const Args& args) {
  const BoundArgs bound(rt, "odd", args, {});
  const Value rest = arithmetic(rt, ArithmeticOp::kModulo, input, Value::integer(2));
  return equal(rt, rest, Value::integer(1));
}

bool divisible_by(Rt& rt, const Value& input, const Args& args) {
  const BoundArgs bound(rt, "divisibleby", args, {"num"}, 1);
  return is_divisible(rt, input, bound[0]);
}

bool same_as(Rt& rt, const Value& input, const Args& args) {
  const BoundArgs bound(rt, "sameas", args, {"other"}, 1);
  if (input.kind() != bound[0].kind()) return false;
  const bool is_object = !input.is_number() && !input.is_none() && !input.is_text();
  return is_object ? input.identity() == bound[0].identity() : equal(rt, input, bound[0]);
}

template <bool (*function)(std::string_view)>
bool has_case(Rt& rt, const Value& input, const Args& args) {
  const BoundArgs bound(rt, "this test", args, {});
  const Text& text = *to_text(rt, input);
  rt.scan(text.bytes.size() * 4);
  return function(text.bytes);
}

bool is_filter(Rt& rt, const Value& input, const Args& args) {
  const BoundArgs bound(rt, "filter", args, {});
  return input.is_text() && find_filter(input.as_text().bytes);
}

bool is_test(Rt& rt, const Value& input, const Args& args) {
  const BoundArgs bound(rt, "test", args, {});
  return input.is_text() && find_test(input.as_text().bytes);
}

struct NamedTest {
  std::string_view name;
  Test test;
};
constexpr NamedTest kTests[] = {
    {"!=", compares<CompareOp::kNotEqual>},
    {"<", compares<CompareOp::kLess>},
    {"<=", compares<CompareOp::kLessEqual>},
    {"==", compares<CompareOp::kEqual>},
    {">", compares<CompareOp::kGreater>},
    {">=", compares<CompareOp::kGreaterEqual>},
    {"boolean", simple<is_kind<Kind::kBool>>},
    {"callable", simple<is_callable>},
    {"defined", simple<is_defined>},
    {"divisibleby", divisible_by},
    {"eq", compares<CompareOp::kEqual>},
    {"equalto", compares<CompareOp::kEqual>},
    {"escaped", simple<never>},
    {"even", is_even},
    {"false", simple<is_boolean_of<false>>},
    {"filter", is_filter},
    {"float", simple<is_kind<Kind::kFloat>>},
    {"ge", compares<CompareOp::kGreaterEqual>},
    {"greaterthan", compares<CompareOp::kGreater>},
    {"gt", compares<CompareOp::kGreater>},
    {"in", compares<CompareOp::kIn>},
    {"integer", simple<is_kind<Kind::kInt>>},
    {"iterable", simple<is_iterable>},
    {"le", compares<CompareOp::kLessEqual>},
    {"lessthan", compares<CompareOp::kLess>},
    {"lower", has_case<is_lower_text>},
    {"lt", compares<CompareOp::kLess>},
    {"mapping", simple<is_kind<Kind::kDict>>},
    {"ne", compares<CompareOp::kNotEqual>},
    {"none", simple<is_kind<Kind::kNone>>},
    {"number", simple<is_number>},
    {"odd", is_odd},
    {"sameas", same_as},
    {"sequence", simple<is_sequence>},
    {"string", simple<is_kind<Kind::kText>>},
    {"test", is_test},
    {"true", simple<is_boolean_of<true>>},
    {"undefined", simple<is_kind<Kind::kUndefined>>},
    {"upper", has_case<is_upper_text>},
};

}  // namespace

Test find_test(std::string_view name) {
  const auto* found =
      std::lower_bound(std::begin(kTests), std::end(kTests), name,
                       [](const NamedTest& each, std::string_view n) { return each.name < n; });
  return found != std::end(kTests) && found->name == name ? found->test : nullptr;
}

}  // namespace minfer::jinja
