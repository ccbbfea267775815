// Well-formed UTF-8 as the Unicode standard's table 3-7 has it: no surrogates, no overlong forms, nothing
// past 10FFFF.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace minfer {

inline constexpr int kUtf8Invalid = 0;
inline constexpr int kUtf8Incomplete = -1;

// Bytes of the character that `text` begins with (1 to 4); kUtf8Invalid where no character can begin so;
// kUtf8Incomplete where `text` ends inside one that further bytes may still complete. `text` must not be
// empty.
inline int utf8_char_size(std::string_view text) {
  const auto lead = static_cast<uint8_t>(text[0]);
  if (lead < 0x80) return 1;
  if (lead < 0xc2 || lead > 0xf4) return kUtf8Invalid;
  const int size = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  // Only the second byte's range depends on the first.
  uint8_t low = 0x80, high = 0xbf;
  if (lead == 0xe0) low = 0xa0;
  if (lead == 0xed) high = 0x9f;
  if (lead == 0xf0) low = 0x90;
  if (lead == 0xf4) high = 0x8f;
  for (int i = 1; i < size; ++i) {
    if (static_cast<size_t>(i) == text.size()) return kUtf8Incomplete;
    const auto byte = static_cast<uint8_t>(text[static_cast<size_t>(i)]);
    if (byte < low || byte > high) return kUtf8Invalid;
    low = 0x80;
    high = 0xbf;
  }
  return size;
}

struct Utf8Char {
  std::array<char, 4> bytes{};
  uint8_t size = 0;
  std::string_view view() const { return {bytes.data(), size}; }
};

// `code` must be a scalar value: at most 10FFFF and no surrogate.
inline Utf8Char utf8_encode(uint32_t code) {
  Utf8Char out;
  const auto put = [&](uint32_t byte) { out.bytes[out.size++] = static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
    return out;
  }
  const int n_more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  constexpr uint32_t kLead[] = {0, 0xc0, 0xe0, 0xf0};
  put(kLead[n_more] | (code >> (6 * n_more)));
  for (int i = n_more - 1; i >= 0; --i) put(0x80 | ((code >> (6 * i)) & 0x3f));
  return out;
}

}  // namespace minfer
