// Private to the interpreter: upper, lower and title case of Unicode 14's characters, as Python's str has
// them.
#pragma once

#include <string>
#include <string_view>

#include "core/jinja/text.h"

namespace minfer::jinja {

std::string upper_of(std::string_view character);
std::string lower_of(std::string_view character);
std::string title_of(std::string_view character);
// By their mappings: a character that has none is neither (Python knows some that are, as the ordinal ª).
bool is_upper(std::string_view character);
bool is_lower(std::string_view character);
inline bool is_cased(std::string_view character) {
  return is_upper(character) || is_lower(character);
}

const Text* upper(Runtime& runtime, const Text& text);
const Text* lower(Runtime& runtime, const Text& text);
const Text* title(Runtime& runtime, const Text& text);  // str.title()
const Text* capitalize(Runtime& runtime, const Text& text);
const Text* swap_case(Runtime& runtime, const Text& text);

}  // namespace minfer::jinja
