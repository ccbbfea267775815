#include "core/jinja/to_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/jinja/operations.h"

namespace minfer::jinja {
namespace {

std::string number_json(const Value& value) {
  if (value.is(Kind::kBool)) return value.as_bool() ? "true" : "false";
  if (value.is(Kind::kInt)) return std::to_string(value.as_int());
  const double real = value.as_real();
  if (std::isnan(real)) return "NaN";
  if (std::isinf(real)) return real < 0 ? "-Infinity" : "Infinity";
  return real_repr(real);
}

std::string ascii_escape(uint32_t code) {
  if (code < 0x10000) return fmt::format("\\u{:04x}", code);
  const uint32_t offset = code - 0x10000;
  return fmt::format("\\u{:04x}\\u{:04x}", 0xd800 + (offset >> 10), 0xdc00 + (offset & 0x3ff));
}

class JsonWriter {
 public:
  JsonWriter(Runtime& runtime, const JsonStyle& style) : runtime_(runtime), style_(style), out_(runtime) {}

  const Text* finish() { return out_.finish(); }

  void write(const Value& value) {
    runtime_.step();
    switch (value.kind()) {
      case Kind::kNone:
        return out_.add("null");
      case Kind::kBool:
      case Kind::kInt:
      case Kind::kFloat:
        return out_.add(number_json(value));
      case Kind::kText:
        return write_text(value.as_text());
      case Kind::kList:
      case Kind::kTuple:
        return write_list(value);
      case Kind::kDict:
        return write_dict(value);
      default:
        runtime_.fail(fmt::format("Object of type {} is not JSON serializable", type_name(value)));
    }
  }

 private:
  void write_text(const Text& text) {
    runtime_.scan(text.bytes.size());
    out_.add("\"");
    for_each_stretch(text,
                     [&](std::string_view stretch, bool is_input) { out_.add(escaped(stretch), is_input); });
    out_.add("\"");
  }

  std::string escaped(std::string_view stretch) const {
    constexpr std::string_view kPlain = "\"\\\n\r\t\b\f", kLetters = "\"\\nrtbf";
    std::string written;
    for (size_t at = 0; at < stretch.size();) {
      const auto byte = static_cast<uint8_t>(stretch[at]);
      const size_t end = byte < 0x80 ? at + 1 : next_char(stretch, at);
      const std::string_view character = stretch.substr(at, end - at);
      const uint32_t code = byte < 0x80 ? byte : style_.ensures_ascii ? code_point(character) : kMalformed;
      if (const size_t which = kPlain.find(stretch[at]); which != std::string_view::npos) {
        written += '\\';
        written += kLetters[which];
      } else if (code < 0x20 || (code >= 0x80 && code != kMalformed)) {
        written += ascii_escape(code);
      } else {
        written += character;
      }
      at = end;
    }
    return written;
  }

  void enter(const Value& value) {
    if (std::find(around_.begin(), around_.end(), value.identity()) != around_.end()) {
      runtime_.fail("circular reference: a value that contains itself has no JSON");
    }
    if (around_.size() >= static_cast<size_t>(runtime_.limits().depth)) {
      runtime_.fail(fmt::format("values nested more than {} deep", runtime_.limits().depth));
    }
    around_.push_back(value.identity());
  }

  void new_line() {
    if (!style_.is_indented) return;
    out_.add("\n");
    for (size_t i = 0; i < around_.size(); ++i) out_.add(style_.indent);
  }

  void write_list(const Value& value) {
    const auto& items = value.as_list().items;
    if (items.empty()) return out_.add("[]");
    enter(value);
    out_.add("[");
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out_.add(style_.item_separator);
      new_line();
      write(items[i]);
    }
    around_.pop_back();
    new_line();
    out_.add("]");
  }

  void write_dict(const Value& value) {
    auto entries = value.as_dict().entries;
    if (entries.empty()) return out_.add("{}");
    enter(value);
    if (style_.sorts_keys) {
      std::stable_sort(entries.begin(), entries.end(),
                       [&](const auto& a, const auto& b) { return less(runtime_, a.first, b.first); });
    }
    out_.add("{");
    for (size_t i = 0; i < entries.size(); ++i) {
      if (i > 0) out_.add(style_.item_separator);
      new_line();
      write_key(entries[i].first);
      out_.add(style_.key_separator);
      write(entries[i].second);
    }
    around_.pop_back();
    new_line();
    out_.add("}");
  }

  void write_key(const Value& key) {
    if (key.is_text()) return write_text(key.as_text());
    if (!key.is_number() && !key.is_none()) {
      runtime_.fail(fmt::format("keys must be str, int, float, bool or None, not {}", type_name(key)));
    }
    out_.add(fmt::format("\"{}\"", key.is_none() ? "null" : number_json(key)));
  }

  Runtime& runtime_;
  const JsonStyle style_;
  TextBuilder out_;
  std::vector<const void*> around_;
};

}  // namespace

const Text* to_json(Runtime& runtime, const Value& value, const JsonStyle& style) {
  JsonWriter writer(runtime, style);
  writer.write(value);
  return writer.finish();
}

}  // namespace minfer::jinja
