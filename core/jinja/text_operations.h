// Private to the interpreter: what methods and filters do alike with texts.
#pragma once

#include <string_view>
#include <vector>

#include "core/jinja/operations.h"

namespace minfer::jinja {

// `chars`: the characters that go; nullptr: white space.
const Text* strip(Runtime& runtime, const Text& text, const Text* chars, bool at_left, bool at_right);
// At most n_most cuts. The separator is not empty.
std::vector<Value> split(Runtime& runtime, const Text& text, std::string_view separator, size_t n_most,
                         bool from_right);
std::vector<Value> split_spaces(Runtime& runtime, const Text& text, size_t n_most, bool from_right);
std::vector<Value> split_lines(Runtime& runtime, const Text& text, bool keeps_ends);
// n_most < 0: all.
const Text* replace(Runtime& runtime, const Text& text, const Text& old, const Text& with, int64_t n_most);
const Text* join(Runtime& runtime, const std::vector<Value>& items, const Text& separator);
const Text* center(Runtime& runtime, const Text& text, int64_t width, std::string_view fill);
const Text* escape_html(Runtime& runtime, const Text& text);

bool is_ascii(std::string_view bytes);
bool is_lower_text(std::string_view bytes);  // some cased characters, all lower
bool is_upper_text(std::string_view bytes);
bool is_title_text(std::string_view bytes);
bool is_space_text(std::string_view bytes);

}  // namespace minfer::jinja
