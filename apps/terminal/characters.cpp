#include "apps/terminal/characters.h"

#include <clocale>
#include <cstdint>
#include <cwchar>

#include "core/utf8.h"

namespace minfer {
namespace {

constexpr uint32_t kNoCharacter = 0xffffffff;

struct Point {
  uint32_t code = kNoCharacter;
  size_t size = 1;
};

Point first_point(std::string_view text) {
  const int size = utf8_char_size(text);
  if (size <= 0) return {};
  const auto byte = [&](int i) { return static_cast<uint8_t>(text[static_cast<size_t>(i)]); };
  if (size == 1) return {byte(0), 1};
  uint32_t code = byte(0) & (0x7fu >> size);
  for (int i = 1; i < size; ++i) code = (code << 6) | (byte(i) & 0x3fu);
  return {code, static_cast<size_t>(size)};
}

bool is_control(uint32_t code) {
  return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == kNoCharacter;
}

// The C library knows the widths of the Unicode that it was built with, but only in a UTF-8 locale, which the
// user's need not be.
int width(uint32_t code) {
  static const locale_t utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  if (!utf8) return 1;
  const locale_t before = uselocale(utf8);
  const int cells = wcwidth(static_cast<wchar_t>(code));
  uselocale(before);
  return cells < 0 ? 1 : cells;  // not assigned in that Unicode
}

bool is_mark(uint32_t code) {
  return !is_control(code) && width(code) == 0;
}

// Where the point, or the byte that is none, before byte `end` begins.
size_t previous_point(std::string_view text, size_t end) {
  size_t begin = end - 1;
  while (begin > 0 && end - begin < 4 && (static_cast<uint8_t>(text[begin]) & 0xc0) == 0x80) --begin;
  return first_point(text.substr(begin, end - begin)).size == end - begin ? begin : end - 1;
}

}  // namespace

size_t character_size(std::string_view text) {
  const Point first = first_point(text);
  size_t size = first.size;
  if (is_control(first.code)) return size;
  while (size < text.size()) {
    const Point next = first_point(text.substr(size));
    if (!is_mark(next.code)) break;
    size += next.size;
  }
  return size;
}

size_t previous_character(std::string_view text, size_t at) {
  size_t begin = at;
  while (begin > 0) {
    const size_t end = begin;
    begin = previous_point(text, end);
    const Point point = first_point(text.substr(begin, end - begin));
    if (is_mark(point.code)) continue;
    return is_control(point.code) && end < at ? end : begin;  // nothing is drawn into a control character
  }
  return 0;
}

std::string shown(std::string_view character) {
  constexpr char kDigits[] = "0123456789abcdef";
  const Point point = first_point(character);
  if (!is_control(point.code)) return std::string(character);
  const uint32_t value = point.code == kNoCharacter ? static_cast<uint8_t>(character[0]) : point.code;
  return {'\\', 'x', kDigits[value / 16], kDigits[value % 16]};
}

int shown_width(std::string_view character) {
  const Point point = first_point(character);
  return is_control(point.code) ? 4 : width(point.code);
}

std::string shown_text(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::string_view character = text.substr(0, character_size(text));
    out += character == "\n" || character == "\t" ? std::string(character) : shown(character);
    text.remove_prefix(character.size());
  }
  return out;
}

}  // namespace minfer
