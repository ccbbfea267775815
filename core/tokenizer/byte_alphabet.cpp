#include "core/tokenizer/byte_alphabet.h"

#include <algorithm>
#include <array>

#include "core/utf8.h"

namespace minfer {
namespace {

// 256 bytes less the 188 printable ones: 68 characters from U+0100 on.
constexpr uint32_t kFirstSubstitute = 0x100;
constexpr size_t kAlphabetEnd = kFirstSubstitute + 68;

constexpr bool stands_for_itself(uint32_t byte) {
  return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

struct Alphabet {
  std::array<uint16_t, 256> code_of{};
  std::array<int16_t, kAlphabetEnd> byte_of{};
};

constexpr Alphabet make_alphabet() {
  Alphabet alphabet;
  alphabet.byte_of.fill(-1);
  uint32_t next = kFirstSubstitute;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const uint32_t code = stands_for_itself(byte) ? byte : next++;
    alphabet.code_of[byte] = static_cast<uint16_t>(code);
    alphabet.byte_of[code] = static_cast<int16_t>(byte);
  }
  return alphabet;
}

constexpr Alphabet kAlphabet = make_alphabet();
static_assert(kAlphabet.code_of[' '] == 0x120 && kAlphabet.code_of['\n'] == 0x10a &&
              kAlphabet.code_of[0xad] == 0x143);

}  // namespace

void append_spelled(uint8_t byte, std::string& out) {
  out += utf8_encode(kAlphabet.code_of[byte]).view();
}

std::string unspell(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const int size = std::max(1, utf8_char_size(text));
    const auto lead = static_cast<uint8_t>(text[0]);
    size_t code = kAlphabetEnd;
    if (size == 1) code = lead < 0x80 ? lead : kAlphabetEnd;
    if (size == 2) code = ((lead & 0x1fu) << 6) | (static_cast<uint8_t>(text[1]) & 0x3fu);
    if (code < kAlphabetEnd && kAlphabet.byte_of[code] >= 0) {
      out += static_cast<char>(kAlphabet.byte_of[code]);
    } else {
      out += text.substr(0, static_cast<size_t>(size));
    }
    text.remove_prefix(static_cast<size_t>(size));
  }
  return out;
}

}  // namespace minfer
