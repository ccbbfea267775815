// str() and repr() of Python.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/jinja/callable.h"
#include "core/jinja/operations.h"

namespace minfer::jinja {
namespace {

// Controls, formats, spaces but U+0020, surrogates and private use (Unicode's Cc, Cf, Zs, Zl, Zp, Cs, Co);
// code points that no character has been given yet count as printable here.
bool is_printable(uint32_t code) {
  struct Range {
    uint32_t first, last;
  };
  if (code >= 0x20 && code < 0x7f) return true;
  static constexpr Range kRanges[] = {
      {0x00, 0x1f},       {0x7f, 0xa0},        {0xad, 0xad},       {0x600, 0x605},     {0x61c, 0x61c},
      {0x6dd, 0x6dd},     {0x70f, 0x70f},      {0x890, 0x891},     {0x8e2, 0x8e2},     {0x1680, 0x1680},
      {0x180e, 0x180e},   {0x2000, 0x200f},    {0x2028, 0x202f},   {0x205f, 0x2064},   {0x2066, 0x206f},
      {0x3000, 0x3000},   {0xd800, 0xf8ff},    {0xfeff, 0xfeff},   {0xfff9, 0xfffb},   {0x110bd, 0x110bd},
      {0x110cd, 0x110cd}, {0x13430, 0x1343f},  {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0001, 0xe0001},
      {0xe0020, 0xe007f}, {0xf0000, 0x10ffff},
  };
  return std::none_of(std::begin(kRanges), std::end(kRanges),
                      [&](const Range& range) { return code >= range.first && code <= range.last; });
}

std::string escaped_char(std::string_view character, char quote) {
  const uint32_t code = code_point(character);
  if (code == static_cast<uint8_t>(quote) || code == '\\') return fmt::format("\\{}", character);
  if (code == '\n') return "\\n";
  if (code == '\r') return "\\r";
  if (code == '\t') return "\\t";
  if (code == kMalformed || is_printable(code)) return std::string(character);
  if (code < 0x100) return fmt::format("\\x{:02x}", code);
  return code < 0x10000 ? fmt::format("\\u{:04x}", code) : fmt::format("\\U{:08x}", code);
}

char quote_for(std::string_view bytes) {
  const bool has_single = bytes.find('\'') != std::string_view::npos;
  return has_single && bytes.find('"') == std::string_view::npos ? '"' : '\'';
}

// To escape a character takes longer than to pass its bytes.
constexpr size_t kScansPerRepr = 8;

class ReprWriter {
 public:
  explicit ReprWriter(Runtime& runtime) : runtime_(runtime), out_(runtime) {}

  const Text* finish() { return out_.finish(); }

  void write(const Value& value) {
    runtime_.step();
    switch (value.kind()) {
      case Kind::kText:
        write_text(value.as_text());
        break;
      case Kind::kList:
        write_items(value, "[", "]");
        break;
      case Kind::kTuple:
        write_items(value, "(", value.as_list().items.size() == 1 ? ",)" : ")");
        break;
      case Kind::kDict:
        write_dict(value, "{", "}");
        break;
      case Kind::kNamespace:
        write_dict(value, "<Namespace {", "}>");
        break;
      default:
        write_scalar(value);
    }
  }

 private:
  void write_scalar(const Value& value) {
    switch (value.kind()) {
      case Kind::kUndefined:
        return out_.add("Undefined");
      case Kind::kNone:
        return out_.add("None");
      case Kind::kBool:
        return out_.add(value.as_bool() ? "True" : "False");
      case Kind::kInt:
        return out_.add(std::to_string(value.as_int()));
      case Kind::kFloat:
        return out_.add(real_repr(value.as_real()));
      case Kind::kLoop:
        return out_.add(
            fmt::format("<LoopContext {}/{}>", value.as_loop().index + 1, value.as_loop().items.size()));
      default:
        runtime_.scan(value.as_callable().name.size() * kScansPerRepr);
        return out_.add(fmt::format("<{} {}>", value.as_callable().macro ? "Macro" : "function",
                                    quoted(value.as_callable().name)));
    }
  }

  void write_text(const Text& text) {
    const char quote = quote_for(text.bytes);
    const std::string_view mark(&quote, 1);
    runtime_.scan(text.bytes.size() * kScansPerRepr);
    out_.add(mark);
    for_each_char(text, [&](std::string_view character, bool is_input) {
      out_.add(escaped_char(character, quote), is_input);
    });
    out_.add(mark);
  }

  // False, having written what Python writes, where `value` contains itself.
  bool enter(const Value& value, std::string_view open, std::string_view close) {
    if (std::find(around_.begin(), around_.end(), value.identity()) != around_.end()) {
      out_.add(open);
      out_.add("...");
      out_.add(close);
      return false;
    }
    if (around_.size() >= static_cast<size_t>(runtime_.limits().depth)) {
      runtime_.fail(fmt::format("values nested more than {} deep", runtime_.limits().depth));
    }
    around_.push_back(value.identity());
    out_.add(open);
    return true;
  }

  void leave(std::string_view close) {
    out_.add(close);
    around_.pop_back();
  }

  void write_items(const Value& value, std::string_view open, std::string_view close) {
    if (!enter(value, open, close)) return;
    std::string_view separator;
    for (const Value& item : value.as_list().items) {
      out_.add(separator);
      write(item);
      separator = ", ";
    }
    leave(close);
  }

  void write_dict(const Value& value, std::string_view open, std::string_view close) {
    if (!enter(value, open, close)) return;
    std::string_view separator;
    for (const auto& [key, item] : value.as_dict().entries) {
      out_.add(separator);
      write(key);
      out_.add(": ");
      write(item);
      separator = ", ";
    }
    leave(close);
  }

  Runtime& runtime_;
  TextBuilder out_;
  std::vector<const void*> around_;
};

}  // namespace

std::string real_repr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  if (value == 0) return std::signbit(value) ? "-0.0" : "0.0";
  char digits[64];
  const double size = std::fabs(value);
  // The shortest digits by either format; Python changes to the other at 1e16 and below 1e-4.
  const auto format = size >= 1e16 || size < 1e-4 ? std::chars_format::scientific : std::chars_format::fixed;
  const auto [end, error] = std::to_chars(digits, digits + sizeof digits, value, format);
  std::string text(digits, end);
  const bool is_whole = text.find_first_of(".e") == std::string::npos;
  return is_whole ? text + ".0" : text;
}

std::string quoted(std::string_view bytes) {
  const char quote = quote_for(bytes);
  std::string out(1, quote);
  for (size_t at = 0; at < bytes.size();) {
    const size_t end = next_char(bytes, at);
    out += escaped_char(bytes.substr(at, end - at), quote);
    at = end;
  }
  return out + quote;
}

const Text* to_repr(Runtime& runtime, const Value& value) {
  ReprWriter writer(runtime);
  writer.write(value);
  return writer.finish();
}

std::string repr_bytes(Runtime& runtime, const Value& value) {
  return std::string(to_repr(runtime, value)->bytes);
}

const Text* to_text(Runtime& runtime, const Value& value) {
  if (value.is_text()) return &value.as_text();
  if (value.is_undefined()) return runtime.view("");
  return to_repr(runtime, value);
}

}  // namespace minfer::jinja
