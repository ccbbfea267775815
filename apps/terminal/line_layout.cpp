#include "apps/terminal/line_layout.h"

#include "apps/terminal/characters.h"

namespace minfer {
namespace {

constexpr int kTabWidth = 8;

class Builder {
 public:
  explicit Builder(int columns) : columns_(columns) {}

  void put(const std::string& text, int width) {
    if (row().width + width > columns_ && row().width > 0) new_row();
    row().text += text;
    row().width += width;
  }
  void new_row() { layout_.rows.emplace_back(); }
  int column() { return row().width; }
  // A cursor behind a full row stands on the next one.
  void set_cursor() {
    if (row().width >= columns_) new_row();
    layout_.cursor_row = layout_.rows.size() - 1;
    layout_.cursor_column = row().width;
  }
  LineLayout finish() { return std::move(layout_); }

 private:
  Row& row() { return layout_.rows.back(); }

  int columns_;
  LineLayout layout_{std::vector<Row>(1), 0, 0};
};

int width_of(std::string_view text) {
  int width = 0;
  for (; !text.empty(); text.remove_prefix(character_size(text))) {
    width += shown_width(text.substr(0, character_size(text)));
  }
  return width;
}

}  // namespace

LineLayout lay_out(std::string_view prompt, std::string_view text, size_t cursor, int columns) {
  Builder builder(columns);
  const int indent = width_of(prompt);
  builder.put(std::string(prompt), indent);
  for (size_t at = 0; at < text.size();) {
    const std::string_view character = text.substr(at, character_size(text.substr(at)));
    const int width = shown_width(character);
    // A character that does not fit any more takes the cursor with it to the next row.
    if (at == cursor && character != "\n" && builder.column() + width > columns) builder.new_row();
    if (at == cursor) builder.set_cursor();
    at += character.size();
    if (character == "\n") {
      builder.new_row();
      builder.put(std::string(static_cast<size_t>(indent), ' '), indent);
    } else if (character == "\t") {
      const int n_spaces = kTabWidth - builder.column() % kTabWidth;
      for (int i = 0; i < n_spaces; ++i) builder.put(" ", 1);
    } else {
      builder.put(shown(character), width);
    }
  }
  if (cursor >= text.size()) builder.set_cursor();
  return builder.finish();
}

int wrapped_rows(int width, int columns) {
  return width <= columns ? 1 : (width + columns - 1) / columns;
}

}  // namespace minfer
