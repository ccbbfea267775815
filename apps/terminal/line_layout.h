// Where a text's characters stand on a terminal of some width.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace minfer {

struct Row {
  std::string text;  // as it is printed
  int width = 0;     // cells, at most the terminal's
};

struct LineLayout {
  std::vector<Row> rows;  // at least one
  size_t cursor_row = 0;
  int cursor_column = 0;  // less than the terminal's columns
};

// `prompt` stands before the first line of `text`, as many spaces before every other one; a line that is too
// long goes on in the next row, and a wide character is not cut. `cursor`: a byte of `text`, or its end.
// columns > 0.
LineLayout lay_out(std::string_view prompt, std::string_view text, size_t cursor, int columns);

// Rows that rows of an earlier width take once the terminal has wrapped them to `columns`, as most do.
int wrapped_rows(int width, int columns);

}  // namespace minfer
