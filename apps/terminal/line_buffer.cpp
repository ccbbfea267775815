#include "apps/terminal/line_buffer.h"

#include <cctype>
#include <utility>

#include "apps/terminal/characters.h"

namespace minfer {
namespace {

// Every byte of a character that is not ASCII counts as a letter.
bool is_word(char byte) {
  const auto value = static_cast<unsigned char>(byte);
  return value >= 0x80 || std::isalnum(value) != 0 || byte == '_';
}

}  // namespace

void LineBuffer::set(std::string text) {
  text_ = std::move(text);
  cursor_ = text_.size();
}

void LineBuffer::insert(std::string_view text) {
  text_.insert(cursor_, text);
  cursor_ += text.size();
}

size_t LineBuffer::line_begin() const {
  return cursor_ == 0 ? 0 : text_.rfind('\n', cursor_ - 1) + 1;
}

size_t LineBuffer::line_end() const {
  const size_t end = text_.find('\n', cursor_);
  return end == std::string::npos ? text_.size() : end;
}

size_t LineBuffer::word_left() const {
  size_t at = cursor_;
  while (at > 0 && !is_word(text_[at - 1])) --at;
  while (at > 0 && is_word(text_[at - 1])) --at;
  return at;
}

size_t LineBuffer::word_right() const {
  size_t at = cursor_;
  while (at < text_.size() && !is_word(text_[at])) ++at;
  while (at < text_.size() && is_word(text_[at])) ++at;
  return at;
}

void LineBuffer::erase(size_t begin, size_t end) {
  text_.erase(begin, end - begin);
  cursor_ = begin;
}

void LineBuffer::move_to_column(size_t begin, size_t n_characters) {
  cursor_ = begin;
  for (; n_characters > 0 && cursor_ < text_.size() && text_[cursor_] != '\n'; --n_characters) {
    cursor_ += character_size(std::string_view(text_).substr(cursor_));
  }
}

bool LineBuffer::move_up() {
  const size_t begin = line_begin();
  if (begin == 0) return false;
  size_t n_characters = 0;
  for (size_t at = cursor_; at > begin; ++n_characters) at = previous_character(text_, at);
  cursor_ = begin - 1;
  move_to_column(line_begin(), n_characters);
  return true;
}

bool LineBuffer::move_down() {
  const size_t begin = line_begin(), end = line_end();
  if (end == text_.size()) return false;
  size_t n_characters = 0;
  for (size_t at = cursor_; at > begin; ++n_characters) at = previous_character(text_, at);
  move_to_column(end + 1, n_characters);
  return true;
}

bool LineBuffer::apply(KeyKind key) {
  const std::string_view rest = std::string_view(text_).substr(cursor_);
  const size_t before = cursor_ == 0 ? 0 : previous_character(text_, cursor_);
  const size_t behind = rest.empty() ? cursor_ : cursor_ + character_size(rest);
  switch (key) {
    case KeyKind::kLeft:
      cursor_ = before;
      return true;
    case KeyKind::kRight:
      cursor_ = behind;
      return true;
    case KeyKind::kWordLeft:
      cursor_ = word_left();
      return true;
    case KeyKind::kWordRight:
      cursor_ = word_right();
      return true;
    case KeyKind::kLineBegin:
      cursor_ = line_begin();
      return true;
    case KeyKind::kLineEnd:
      cursor_ = line_end();
      return true;
    case KeyKind::kUp:
      return move_up();
    case KeyKind::kDown:
      return move_down();
    case KeyKind::kBackspace:
      erase(before, cursor_);
      return true;
    case KeyKind::kDelete:
      erase(cursor_, behind);
      return true;
    case KeyKind::kEraseWordLeft:
      erase(word_left(), cursor_);
      return true;
    case KeyKind::kEraseWordRight:
      erase(cursor_, word_right());
      return true;
    case KeyKind::kEraseToLineBegin:
      erase(line_begin(), cursor_);
      return true;
    case KeyKind::kEraseToLineEnd:
      erase(cursor_, line_end());
      return true;
    default:
      return false;
  }
}

}  // namespace minfer
