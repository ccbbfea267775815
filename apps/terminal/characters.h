// Text as a terminal shows it: what stands as one character, how many cells it takes, and what must not reach
// the terminal as it is.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace minfer {

// Bytes of the first character of `text`, together with the marks that a terminal draws into the same cells.
// A byte that is no UTF-8 is a character. `text` must not be empty.
size_t character_size(std::string_view text);
// Where the character before byte `at` begins. 0 < at <= text.size().
size_t previous_character(std::string_view text, size_t at);

// What is shown for one character_size() character: control characters (of both sets), and bytes that are no
// UTF-8, as \xNN, everything else as it is.
std::string shown(std::string_view character);
// Cells that it takes; no tabs or newlines.
int shown_width(std::string_view character);

// A model's text made fit for a terminal: shown() throughout but for tabs and newlines, so that nothing in it
// moves the cursor or asks the terminal for something. Whole characters only.
std::string shown_text(std::string_view text);

}  // namespace minfer
