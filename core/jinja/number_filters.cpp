// Filters about numbers, and those that choose between two values.
#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "core/jinja/bound_args.h"
#include "core/jinja/filters.h"

namespace minfer::jinja {
namespace {

using Rt = Runtime;  // in every signature below

// To read a digit takes longer than to pass a byte.
constexpr size_t kScansPerNumber = 8;

Value absolute(Rt& rt, const Value& input, const Args& args) {
  const BoundArgs bound(rt, "abs", args, {});
  const Value number = require_number(rt, input, "abs()");
  if (number.is(Kind::kFloat)) return Value::real(std::fabs(number.as_real()));
  return number.as_int() < 0 ? negate(rt, number) : number;
}

std::optional<Value> int_of(Rt& rt, const Value& input, int base) {
  if (input.is_integral()) return Value::integer(input.as_int());
  std::optional<int64_t> whole;
  if (input.is_text()) {
    rt.scan(input.as_text().bytes.size() * kScansPerNumber);
    whole = parse_integer(input.as_text().bytes, base);
    if (!whole) {
      const auto real = parse_real(input.as_text().bytes);
      if (real) whole = to_integer(*real);
    }
  } else if (input.is(Kind::kFloat)) {
    whole = to_integer(input.as_real());
  }
  if (!whole) return std::nullopt;
  return Value::integer(*whole);
}

Value int_filter(Rt& rt, const Value& input, const Args& args) {
  const BoundArgs bound(rt, "int", args, {"default", "base"});
  if (input.is_undefined()) fail_undefined(rt, input);
  const int64_t base = bound.integer_or(1, 10);
  if (base != 0 && (base < 2 || base > 36)) rt.fail("int: base must be 0 or from 2 to 36");
  const auto whole = int_of(rt, input, static_cast<int>(base));
  return whole ? *whole : bound.has(0) ? bound[0] : Value::integer(0);
}

Value float_filter(Rt& rt, const Value& input, const Args& args) {
  const BoundArgs bound(rt, "float", args, {"default"});
  if (input.is_undefined()) fail_undefined(rt, input);
  if (input.is_number()) return Value::real(input.as_real());
  if (input.is_text()) rt.scan(input.as_text().bytes.size() * kScansPerNumber);
  const auto real = input.is_text() ? parse_real(input.as_text().bytes) : std::nullopt;
  return real ? Value::real(*real) : bound.has(0) ? bound[0] : Value::real(0);
}

// To `precision` decimals, half to even of the exact value, as Python does: by way of its decimal digits.
double round_decimals(double value, int64_t precision) {
  if (!std::isfinite(value) || precision > 320) return value;
  if (precision < -308) return 0;
  if (precision < 0) {
    const double scale = std::pow(10.0, static_cast<double>(-precision));
    return std::nearbyint(value / scale) * scale;
  }
  char digits[700];
  const auto [end, error] = std::to_chars(digits, digits + sizeof digits, value, std::chars_format::fixed,
                                          static_cast<int>(precision));
  double rounded = value;
  if (error == std::errc()) std::from_chars(digits, end, rounded);
  return rounded;
}

Value round_filter(Rt& rt, const Value& input, const Args& args) {
  const BoundArgs bound(rt, "round", args, {"precision", "method"});
  const Value number = require_number(rt, input, "round()");
  const int64_t precision = bound.integer_or(0, 0);
  const std::string_view method = bound.text_or(1, "common");
  if (method == "common") {
    // Python's round leaves an integer one.
    if (number.is(Kind::kInt) && precision >= 0) return number;
    const double rounded = round_decimals(number.as_real(), precision);
    if (number.is(Kind::kFloat)) return Value::real(rounded);
    const auto whole = to_integer(rounded);
    return whole ? Value::integer(*whole) : Value::real(rounded);
  }
  if (method != "ceil" && method != "floor") rt.fail("round: method must be common, ceil or floor");
  const double scale = std::pow(10.0, static_cast<double>(precision));
  const double scaled = number.as_real() * scale;
  return Value::real((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale);
}

Value default_filter(Rt& rt, const Value& input, const Args& args) {
  const BoundArgs bound(rt, "default", args, {"default_value", "boolean"});
  const bool is_missing = input.is_undefined() || (bound.truth_or(1, false) && !truthy(input));
  if (!is_missing) return input;
  return bound.has(0) ? bound[0] : Value::text(rt.view(""));
}

Value attr(Rt& rt, const Value& input, const Args& args) {
  const BoundArgs bound(rt, "attr", args, {"name"}, 1);
  // Jinja2's looks at attributes only, never at items.
  const std::string_view name = to_text(rt, bound[0])->bytes;
  if (input.is(Kind::kDict) && !find_method(Kind::kDict, name)) {
    return rt.undefined(fmt::format("'dict object' has no attribute {}", quoted(name.substr(0, 100))));
  }
  return get_attribute(rt, input, name);
}

}  // namespace

std::span<const NamedFilter> number_filters() {
  static constexpr NamedFilter kFilters[] = {
      {"abs", absolute},       {"attr", attr},      {"d", default_filter},   {"default", default_filter},
      {"float", float_filter}, {"int", int_filter}, {"round", round_filter},
  };
  return kFilters;
}

}  // namespace minfer::jinja
