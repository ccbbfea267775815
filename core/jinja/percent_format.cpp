// format % values: %[(name)][flags][width][.precision]type
#include <fmt/format.h>

#include "core/jinja/format.h"

namespace minfer::jinja {
namespace {

class PercentFormatter {
 public:
  PercentFormatter(Runtime& runtime, const Text& format, const Value& values)
      : runtime_(runtime), format_(format), bytes_(format.bytes), values_(values), out_(runtime) {}

  Value run() {
    runtime_.scan(bytes_.size());
    while (at_ < bytes_.size()) {
      const size_t percent = std::min(bytes_.find('%', at_), bytes_.size());
      out_.add(*slice_bytes(runtime_, format_, at_, percent));
      at_ = percent + 1;
      if (percent < bytes_.size()) conversion();
    }
    const bool is_tuple = values_.is(Kind::kTuple);
    const bool is_left = is_tuple ? n_used_ < values_.as_list().items.size() : n_used_ == 0 && !takes_names();
    if (is_left) runtime_.fail("not all arguments converted during string formatting");
    return Value::text(out_.finish());
  }

 private:
  // A mapping or a list may stay unused: it might have served names.
  bool takes_names() const { return values_.is(Kind::kDict) || values_.is(Kind::kList); }

  char peek() const { return at_ < bytes_.size() ? bytes_[at_] : '\0'; }

  Value next_value() {
    if (values_.is(Kind::kTuple)) {
      const auto& items = values_.as_list().items;
      if (n_used_ < items.size()) return items[n_used_++];
    } else if (n_used_++ == 0) {
      return values_;
    }
    runtime_.fail("not enough arguments for format string");
  }

  Value named_value() {
    const size_t end = bytes_.find(')', at_);
    if (end == std::string_view::npos) runtime_.fail("incomplete format key");
    const std::string_view name = bytes_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    if (!values_.is(Kind::kDict)) runtime_.fail("format requires a mapping");
    const Value* found = values_.as_dict().find(name);
    if (!found) runtime_.fail(fmt::format("no value for the format key {}", quoted(name.substr(0, 100))));
    return *found;
  }

  int64_t size() {
    if (peek() != '*') return read_size(runtime_, bytes_, at_);
    ++at_;
    const Value given = next_value();
    if (!given.is_integral()) runtime_.fail("* wants int");
    return given.as_int();
  }

  void conversion() {
    FormatSpec spec;
    spec.align = '>';
    std::optional<Value> value;
    if (peek() == '(') value = named_value();
    bool has_zero = false, is_left = false;
    for (; std::string_view("-+ #0").find(peek()) != std::string_view::npos && peek() != '\0'; ++at_) {
      is_left |= peek() == '-';
      has_zero |= peek() == '0';
      spec.has_prefix |= peek() == '#';
      if (peek() == '+' || (peek() == ' ' && spec.sign == '\0')) spec.sign = peek();
    }
    spec.width = size();
    if (spec.width < 0) is_left = true;
    if (spec.width < 0) spec.width = spec.width < -INT64_MAX ? INT64_MAX : -spec.width;
    if (peek() == '.') {
      ++at_;
      spec.precision = std::max<int64_t>(size(), 0);
    }
    while (std::string_view("hlL").find(peek()) != std::string_view::npos && peek() != '\0') ++at_;
    const char type = peek();
    if (type == '\0') runtime_.fail("incomplete format");
    ++at_;
    if (type == '%') return out_.add("%");
    if (is_left) spec.align = '<';
    convert(value ? *value : next_value(), type, spec, has_zero && !is_left);
  }

  void convert(const Value& value, char type, FormatSpec spec, bool has_zero) {
    switch (type) {
      case 's':
      case 'r':
      case 'a':
        spec.type = 's';
        return format_value(runtime_,
                            Value::text(type == 's' ? to_text(runtime_, value) : to_repr(runtime_, value)),
                            spec, out_);
      case 'c':
        return character(value, spec);
      case 'd':
      case 'i':
      case 'u':
      case 'x':
      case 'X':
      case 'o':
        spec.type = type == 'i' || type == 'u' ? 'd' : type;
        return number(integer(value, type), spec, has_zero);
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
        spec.type = type;
        return number(require_number(runtime_, value, fmt::format("%{}", type)), spec, has_zero);
      default:
        runtime_.fail(fmt::format("unsupported format character (0x{:x})", static_cast<uint8_t>(type)));
    }
  }

  Value integer(const Value& value, char type) {
    const Value number = require_number(runtime_, value, fmt::format("%{}", type));
    if (!number.is(Kind::kFloat)) return number;
    const auto whole = to_integer(number.as_real());
    if (type == 'x' || type == 'X' || type == 'o' || !whole) {
      runtime_.fail(fmt::format("%{} format: an integer is required, not float", type));
    }
    return Value::integer(*whole);
  }

  // Of an integer, the precision is its fewest digits.
  void number(const Value& value, FormatSpec spec, bool has_zero) {
    if (value.is(Kind::kInt) && std::string_view("dxXo").find(spec.type) != std::string_view::npos) {
      if (spec.precision) runtime_.fail("a precision for an integer is not supported");
    }
    if (has_zero) {
      spec.fill = "0";
      spec.align = '=';
    }
    format_value(runtime_, value, spec, out_);
  }

  void character(const Value& value, const FormatSpec& spec) {
    if (!value.is_text() || count_chars(value.as_text()) != 1)
      runtime_.fail("%c requires a string of one character");
    format_value(runtime_, value, spec, out_);
  }

  Runtime& runtime_;
  const Text& format_;
  std::string_view bytes_;
  const Value& values_;
  size_t at_ = 0, n_used_ = 0;
  TextBuilder out_;
};

}  // namespace

Value percent_format(Runtime& runtime, const Text& format, const Value& values) {
  return PercentFormatter(runtime, format, values).run();
}

}  // namespace minfer::jinja
