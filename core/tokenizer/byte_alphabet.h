// The alphabet in which byte-level vocabularies spell bytes: printable Latin-1 stands for itself, every other
// byte for a character from U+0100 on, so that no token holds a space or a control character. Radford et al.
// 2019, encoder.py.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace minfer {

void append_spelled(uint8_t byte, std::string& out);
// The bytes that a text spells. Characters outside the alphabet, and bytes that are no UTF-8, stand for
// themselves.
std::string unspell(std::string_view text);

}  // namespace minfer
