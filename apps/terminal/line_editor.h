// A message under edit on a terminal: keys in, rows out.
#pragma once

#include <string>
#include <vector>

#include "apps/terminal/key_decoder.h"
#include "apps/terminal/line_buffer.h"
#include "apps/terminal/line_layout.h"
#include "apps/terminal/line_reader.h"
#include "apps/terminal/message_input.h"
#include "apps/terminal/terminal.h"

namespace minfer {

class LineEditor final : public LineReader {
 public:
  Typed read(AnswerScope& scope) override;

 private:
  void start();
  // Takes all keys that are whole. Whether one ended the reading; `typed` is its result then.
  bool handle_keys(Typed& typed);
  // Whether the key ended the reading; `typed` is its result then.
  bool handle(const Key& key, Typed& typed);
  bool enter(Typed& typed);
  bool interrupt(Typed& typed);
  void recall(bool older);

  void draw();
  void redraw_resized();
  // Draws all rows and leaves the cursor below them.
  void leave(const std::string& behind = {});
  void erase_drawn(std::string& out, size_t n_rows_above);

  Terminal terminal_;
  KeyDecoder keys_;
  LineBuffer buffer_;
  MessageInput input_;

  std::vector<std::string> history_;
  size_t at_ = 0;      // of history_; its size: the draft
  std::string draft_;  // what was typed before going back in history

  std::vector<Row> drawn_;  // rows above and with the cursor's, as they are on the screen
  int drawn_column_ = 0;    // where the cursor stands in the last of them
  size_t first_row_ = 0;    // of the layout, at the top of what is shown
};

}  // namespace minfer
