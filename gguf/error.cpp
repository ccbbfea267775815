#include "gguf/error.h"

namespace minfer::gguf {

std::string printable(std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      out += "\\x";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    } else {
      out += c;
    }
  }
  return out;
}

std::string quoted(std::string_view text) {
  constexpr size_t kMaxShown = 96;
  std::string out = printable(text.substr(0, kMaxShown));
  out.insert(out.begin(), '\'');
  out.append(text.size() > kMaxShown ? "...'" : "'");
  return out;
}

}  // namespace minfer::gguf
