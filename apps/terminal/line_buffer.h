// A text under a cursor, which keys edit: UTF-8, several lines.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "apps/terminal/key_decoder.h"

namespace minfer {

class LineBuffer {
 public:
  const std::string& text() const { return text_; }
  size_t cursor() const { return cursor_; }  // a byte of text(), where a character begins, or its end

  void set(std::string text);  // the cursor goes to its end
  void insert(std::string_view text);

  // Moves and erasures. Returns false where the key means nothing here: it is no such key, or up and down
  // leave the text.
  bool apply(KeyKind key);

 private:
  size_t line_begin() const;
  size_t line_end() const;
  size_t word_left() const;
  size_t word_right() const;
  void erase(size_t begin, size_t end);  // the cursor stands at one of them
  bool move_up();
  bool move_down();
  void move_to_column(size_t begin, size_t n_characters);  // of the line that begins there

  std::string text_;
  size_t cursor_ = 0;
};

}  // namespace minfer
