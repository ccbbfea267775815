// Private to the interpreter: classes of characters by their Unicode properties.
#pragma once

#include <cstddef>
#include <string_view>

namespace minfer::jinja {

enum class CharClass { kAlphabetic, kAlphanumeric, kDecimal, kDigit, kNumeric, kIdentifier };

// One character or more, all of the class. False on malformed UTF-8.
bool consists_of(std::string_view bytes, CharClass char_class);
// Runs of letters, digits and underscores.
size_t count_words(std::string_view bytes);

}  // namespace minfer::jinja
