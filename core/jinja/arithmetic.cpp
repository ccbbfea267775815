#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "core/jinja/format.h"
#include "core/jinja/operations.h"

namespace minfer::jinja {
namespace {

constexpr int64_t kMinInt = std::numeric_limits<int64_t>::min();

[[noreturn]] void fail_overflow(Runtime& runtime) {
  runtime.fail("an integer beyond 64 bits");
}

[[noreturn]] void fail_operands(Runtime& runtime, std::string_view op, const Value& a, const Value& b) {
  if (a.is_undefined()) fail_undefined(runtime, a);
  if (b.is_undefined()) fail_undefined(runtime, b);
  runtime.fail(
      fmt::format("unsupported operand type(s) for {}: '{}' and '{}'", op, type_name(a), type_name(b)));
}

std::string_view symbol(ArithmeticOp op) {
  static constexpr std::string_view kSymbols[] = {"+", "-", "*", "/", "//", "%", "**"};
  return kSymbols[static_cast<size_t>(op)];
}

// Towards minus infinity, as Python's // and %.
int64_t floor_divide(Runtime& runtime, int64_t a, int64_t b) {
  if (a == kMinInt && b == -1) fail_overflow(runtime);
  const int64_t quotient = a / b;
  return quotient - (a % b != 0 && (a < 0) != (b < 0));
}

int64_t floor_modulo(int64_t a, int64_t b) {
  if (b == -1) return 0;
  const int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

double floor_modulo(double a, double b) {
  const double rest = std::fmod(a, b);
  if (rest == 0) return std::copysign(0.0, b);
  return (rest < 0) != (b < 0) ? rest + b : rest;
}

double floor_divide(double a, double b) {
  const double rest = std::fmod(a, b);
  double quotient = (a - rest) / b;  // whole but for its rounding
  if (rest != 0 && (rest < 0) != (b < 0)) quotient -= 1;
  return quotient == 0 ? std::copysign(0.0, a / b) : std::round(quotient);
}

int64_t integer_power(Runtime& runtime, int64_t base, int64_t exponent) {
  int64_t result = 1;
  while (exponent > 0) {
    bool overflows = (exponent & 1) && __builtin_mul_overflow(result, base, &result);
    exponent >>= 1;
    overflows |= exponent > 0 && __builtin_mul_overflow(base, base, &base);
    if (overflows) fail_overflow(runtime);
  }
  return result;
}

Value integer_arithmetic(Runtime& runtime, ArithmeticOp op, int64_t a, int64_t b) {
  int64_t result = 0;
  bool overflows = false;
  switch (op) {
    case ArithmeticOp::kAdd:
      overflows = __builtin_add_overflow(a, b, &result);
      break;
    case ArithmeticOp::kSubtract:
      overflows = __builtin_sub_overflow(a, b, &result);
      break;
    case ArithmeticOp::kMultiply:
      overflows = __builtin_mul_overflow(a, b, &result);
      break;
    case ArithmeticOp::kDivide:
      return Value::real(static_cast<double>(a) / static_cast<double>(b));
    case ArithmeticOp::kFloorDivide:
      result = floor_divide(runtime, a, b);
      break;
    case ArithmeticOp::kModulo:
      result = floor_modulo(a, b);
      break;
    case ArithmeticOp::kPower:
      result = integer_power(runtime, a, b);
      break;
  }
  if (overflows) fail_overflow(runtime);
  return Value::integer(result);
}

double real_power(Runtime& runtime, double a, double b) {
  if (a < 0 && std::isfinite(b) && b != std::trunc(b))
    runtime.fail("a complex number: a root of a negative one");
  const double result = std::pow(a, b);
  if (std::isinf(result) && std::isfinite(a) && std::isfinite(b)) runtime.fail("a float beyond its range");
  return result;
}

Value real_arithmetic(Runtime& runtime, ArithmeticOp op, double a, double b) {
  switch (op) {
    case ArithmeticOp::kAdd:
      return Value::real(a + b);
    case ArithmeticOp::kSubtract:
      return Value::real(a - b);
    case ArithmeticOp::kMultiply:
      return Value::real(a * b);
    case ArithmeticOp::kDivide:
      return Value::real(a / b);
    case ArithmeticOp::kFloorDivide:
      return Value::real(floor_divide(a, b));
    case ArithmeticOp::kModulo:
      return Value::real(floor_modulo(a, b));
    case ArithmeticOp::kPower:
      break;
  }
  return Value::real(real_power(runtime, a, b));
}

Value number_arithmetic(Runtime& runtime, ArithmeticOp op, const Value& a, const Value& b) {
  const bool divides =
      op == ArithmeticOp::kDivide || op == ArithmeticOp::kFloorDivide || op == ArithmeticOp::kModulo;
  if (divides && !truthy(b)) runtime.fail("division by zero");
  if (op == ArithmeticOp::kPower && !truthy(a) && b.as_real() < 0) {
    runtime.fail("0.0 cannot be raised to a negative power");
  }
  const bool inverts = op == ArithmeticOp::kPower && b.as_real() < 0;  // then even of integers
  if (a.is_integral() && b.is_integral() && !inverts) {
    return integer_arithmetic(runtime, op, a.as_int(), b.as_int());
  }
  return real_arithmetic(runtime, op, a.as_real(), b.as_real());
}

Value add_sequences(Runtime& runtime, const Value& a, const Value& b) {
  if (a.is_text()) {
    TextBuilder joined(runtime);
    joined.add(a.as_text());
    joined.add(b.as_text());
    return Value::text(joined.finish());
  }
  std::vector<Value> items = iterate(runtime, a);
  const std::vector<Value> more = iterate(runtime, b);
  items.insert(items.end(), more.begin(), more.end());
  List* list = runtime.new_list(std::move(items));
  return a.is(Kind::kTuple) ? Value::tuple(list) : Value::list(list);
}

Value repeat(Runtime& runtime, const Value& sequence, int64_t n_times) {
  const auto n = static_cast<uint64_t>(std::max<int64_t>(n_times, 0));
  if (sequence.is_text()) {
    TextBuilder repeated(runtime);
    repeated.repeat(sequence.as_text(), n);
    return Value::text(repeated.finish());
  }
  List* list = runtime.new_list();
  const std::vector<Value> items = iterate(runtime, sequence);
  for (uint64_t i = 0; i < n && !items.empty(); ++i) {
    runtime.step(items.size());
    for (const Value& item : items) runtime.append(*list, item);
  }
  return sequence.is(Kind::kTuple) ? Value::tuple(list) : Value::list(list);
}

bool is_repeatable(const Value& value) {
  return value.is_text() || value.is_sequence();
}

std::string_view without_underscores(std::string_view digits, std::string& storage) {
  // Between digits only, as in Python.
  if (digits.find('_') == std::string_view::npos) return digits;
  for (size_t i = 0; i < digits.size(); ++i) {
    const auto is_digit = [&](size_t at) {
      return at < digits.size() && std::isalnum(static_cast<uint8_t>(digits[at]));
    };
    if (digits[i] != '_') {
      storage += digits[i];
    } else if (i == 0 || !is_digit(i - 1) || !is_digit(i + 1)) {
      return {};
    }
  }
  return storage;
}

}  // namespace

Value arithmetic(Runtime& runtime, ArithmeticOp op, const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) return number_arithmetic(runtime, op, a, b);
  if (op == ArithmeticOp::kAdd && is_repeatable(a) && a.kind() == b.kind())
    return add_sequences(runtime, a, b);
  if (op == ArithmeticOp::kMultiply && is_repeatable(a) && b.is_integral())
    return repeat(runtime, a, b.as_int());
  if (op == ArithmeticOp::kMultiply && a.is_integral() && is_repeatable(b))
    return repeat(runtime, b, a.as_int());
  if (op == ArithmeticOp::kModulo && a.is_text()) return percent_format(runtime, a.as_text(), b);
  if (op == ArithmeticOp::kAdd && a.is_text() && !b.is_undefined()) {
    runtime.fail(fmt::format("can only concatenate str (not \"{}\") to str", type_name(b)));
  }
  fail_operands(runtime, symbol(op), a, b);
}

Value require_number(Runtime& runtime, const Value& a, std::string_view op) {
  if (a.is_undefined()) fail_undefined(runtime, a);
  if (!a.is_number()) runtime.fail(fmt::format("bad operand type for {}: '{}'", op, type_name(a)));
  return a.is(Kind::kBool) ? Value::integer(a.as_int()) : a;
}

Value negate(Runtime& runtime, const Value& a) {
  const Value number = require_number(runtime, a, "unary -");
  if (number.is(Kind::kFloat)) return Value::real(-number.as_real());
  if (number.as_int() == kMinInt) fail_overflow(runtime);
  return Value::integer(-number.as_int());
}

std::optional<int64_t> parse_integer(std::string_view text, int base) {
  text = trim_left(trim_right(text));
  const bool is_negative = text.starts_with('-');
  if (is_negative || text.starts_with('+')) text.remove_prefix(1);
  const auto skip_prefix = [&](int its_base, std::string_view lower, std::string_view upper) {
    if ((base != its_base && base != 0) || !(text.starts_with(lower) || text.starts_with(upper))) return;
    text.remove_prefix(2);
    base = its_base;
  };
  skip_prefix(16, "0x", "0X");
  skip_prefix(8, "0o", "0O");
  skip_prefix(2, "0b", "0B");
  if (base == 0) base = 10;
  std::string storage;
  const std::string_view digits = without_underscores(text, storage);
  if (base < 2 || base > 36 || digits.empty() || !std::isalnum(static_cast<uint8_t>(digits[0])))
    return std::nullopt;
  const std::string signed_digits = fmt::format("{}{}", is_negative ? "-" : "", digits);
  int64_t value = 0;
  const char* end = signed_digits.data() + signed_digits.size();
  const auto [stop, error] = std::from_chars(signed_digits.data(), end, value, base);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

std::optional<double> parse_real(std::string_view text) {
  text = trim_left(trim_right(text));
  if (text.starts_with('+')) text.remove_prefix(1);
  std::string storage;
  const std::string_view digits = without_underscores(text, storage);
  const bool has_two_signs = digits.starts_with('+') || (digits.size() < text.size() && digits.empty());
  const bool is_nan_of_c = digits.find('(') != std::string_view::npos;  // nan(...) is C's alone
  if (digits.empty() || has_two_signs || is_nan_of_c) return std::nullopt;
  double value = 0;
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value);
  if (stop != end || error == std::errc::invalid_argument) return std::nullopt;
  if (error == std::errc::result_out_of_range) {
    // from_chars says not whether it is too large or too small; Python rounds to infinity or to zero.
    const size_t exponent = digits.find_first_of("eE");
    const bool is_small = exponent != std::string_view::npos ? digits.substr(exponent + 1).starts_with('-')
                                                             : digits.find('.') < 3;
    const double size = is_small ? 0.0 : std::numeric_limits<double>::infinity();
    return digits.starts_with('-') ? -size : size;
  }
  return value;
}

std::optional<int64_t> to_integer(double value) {
  if (!(value >= -0x1p63 && value < 0x1p63)) return std::nullopt;
  return static_cast<int64_t>(value);
}

}  // namespace minfer::jinja
