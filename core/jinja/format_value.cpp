#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/jinja/format.h"

namespace minfer::jinja {
namespace {

constexpr int64_t kMaxPrecision = 1000;

[[noreturn]] void fail_type(Runtime& runtime, const FormatSpec& spec, const Value& value) {
  if (value.is_undefined()) fail_undefined(runtime, value);
  runtime.fail(
      fmt::format("unknown format code '{}' for an object of type '{}'", spec.type, type_name(value)));
}

std::string upper_ascii(std::string text) {
  for (char& c : text) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
  return text;
}

// Of a number's magnitude, every three (a hexadecimal's four) digits from the right of its whole part.
std::string with_thousands(const std::string& digits, char separator, size_t group) {
  const size_t whole = std::min(digits.find_first_of(".e"), digits.size());
  std::string out;
  for (size_t i = 0; i < whole; ++i) {
    if (i > 0 && (whole - i) % group == 0) out += separator;
    out += digits[i];
  }
  return out + digits.substr(whole);
}

struct Magnitude {
  bool is_negative = false;
  std::string prefix, digits;
};

Magnitude format_integer(const FormatSpec& spec, int64_t value) {
  const bool is_negative = value < 0;
  const uint64_t size = is_negative ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  const auto prefix = [&](const char* text) { return spec.has_prefix ? text : ""; };
  switch (spec.type) {
    case 'x':
      return {is_negative, prefix("0x"), fmt::format("{:x}", size)};
    case 'X':
      return {is_negative, prefix("0X"), fmt::format("{:X}", size)};
    case 'o':
      return {is_negative, prefix("0o"), fmt::format("{:o}", size)};
    case 'b':
      return {is_negative, prefix("0b"), fmt::format("{:b}", size)};
    default:
      return {is_negative, "", std::to_string(size)};
  }
}

std::string real_digits(double size, std::chars_format format, int precision) {
  std::string digits(static_cast<size_t>(precision) + 400, '\0');  // 309 digits before the point at most
  const auto [end, error] =
      std::to_chars(digits.data(), digits.data() + digits.size(), size, format, precision);
  digits.resize(static_cast<size_t>(end - digits.data()));
  return digits;
}

Magnitude format_real(Runtime& runtime, const FormatSpec& spec, double value) {
  Magnitude out{std::signbit(value) && !std::isnan(value), "", ""};
  const bool is_percent = spec.type == '%';
  const double size = std::fabs(value) * (is_percent ? 100 : 1);
  const int64_t precision = spec.precision.value_or(6);
  if (precision > kMaxPrecision) {
    runtime.fail(fmt::format("a precision of more than {} digits ({})", kMaxPrecision, precision));
  }
  const char type = static_cast<char>(spec.type | 0x20);
  if (!std::isfinite(size)) {
    out.digits = std::isnan(size) ? "nan" : "inf";
  } else if (spec.type == '\0' && !spec.precision) {
    out.digits = real_repr(size);
  } else if (type == 'e') {
    out.digits = real_digits(size, std::chars_format::scientific, static_cast<int>(precision));
  } else if (type == 'f' || is_percent) {
    out.digits = real_digits(size, std::chars_format::fixed, static_cast<int>(precision));
  } else {
    const int significant = std::max(1, static_cast<int>(precision));
    out.digits = real_digits(size, std::chars_format::general, significant);
    const bool is_whole = out.digits.find_first_of(".e") == std::string::npos;
    if (spec.type == '\0' && is_whole) out.digits += ".0";
  }
  if (spec.type >= 'A' && spec.type <= 'Z') out.digits = upper_ascii(out.digits);
  if (is_percent) out.digits += '%';
  return out;
}

void format_number(Runtime& runtime, const Magnitude& number, const FormatSpec& spec, TextBuilder& out) {
  std::string sign = number.is_negative ? "-" : spec.sign == '\0' ? "" : std::string(1, spec.sign);
  sign += number.prefix;
  std::string digits = number.digits;
  if (spec.thousands != '\0') digits = with_thousands(digits, spec.thousands, number.prefix.empty() ? 3 : 4);
  const auto n_padding = std::max<int64_t>(spec.width - static_cast<int64_t>(sign.size() + digits.size()), 0);
  if (spec.align == '=') {
    out.add(sign);
    out.fill(spec.fill, static_cast<size_t>(n_padding));
    out.add(digits);
    return;
  }
  const Text text{sign.append(digits), {}};
  pad(runtime, text, spec.fill, spec.align == '\0' ? '>' : spec.align, spec.width, out);
}

}  // namespace

int64_t read_size(Runtime& runtime, std::string_view bytes, size_t& at) {
  int64_t size = 0;
  for (; at < bytes.size() && bytes[at] >= '0' && bytes[at] <= '9'; ++at) {
    size = size * 10 + (bytes[at] - '0');
    runtime.check_text_size(static_cast<size_t>(size));
  }
  return size;
}

void pad(Runtime& runtime, const Text& text, std::string_view fill, char align, int64_t width,
         TextBuilder& out) {
  width = std::max<int64_t>(width, 0);
  runtime.check_text_size(static_cast<size_t>(width));
  const auto n_chars = static_cast<int64_t>(count_chars(text));
  const auto n_padding = static_cast<size_t>(std::max<int64_t>(width - n_chars, 0));
  const size_t n_before = align == '>' ? n_padding : align == '^' ? n_padding / 2 : 0;
  out.fill(fill, n_before);
  out.add(text);
  out.fill(fill, n_padding - n_before);
}

void format_value(Runtime& runtime, const Value& value, const FormatSpec& spec, TextBuilder& out) {
  constexpr std::string_view kIntegerTypes = "dxXob", kRealTypes = "eEfFgG%";
  const bool is_plain = spec.type == '\0' && !value.is(Kind::kBool);
  const bool takes_real = kRealTypes.find(spec.type) != std::string_view::npos || spec.precision;
  if (value.is_integral() &&
      (kIntegerTypes.find(spec.type) != std::string_view::npos || (is_plain && !takes_real))) {
    return format_number(runtime, format_integer(spec, value.as_int()), spec, out);
  }
  if (value.is_number() && (is_plain || kRealTypes.find(spec.type) != std::string_view::npos)) {
    return format_number(runtime, format_real(runtime, spec, value.as_real()), spec, out);
  }
  if (spec.type != '\0' && spec.type != 's') fail_type(runtime, spec, value);
  const Text* text = to_text(runtime, value);
  if (spec.precision && *spec.precision < static_cast<int64_t>(count_chars(*text))) {
    text = slice_bytes(runtime, *text, 0, byte_of_char(*text, static_cast<size_t>(*spec.precision)));
  }
  pad(runtime, *text, spec.fill, spec.align == '\0' || spec.align == '=' ? '<' : spec.align, spec.width, out);
}

}  // namespace minfer::jinja
