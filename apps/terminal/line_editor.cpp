#include "apps/terminal/line_editor.h"

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace minfer {
namespace {

constexpr std::string_view kPrompt = "> ";
constexpr int kEscapeTimeoutMs = 100;  // a key's bytes come closer together than these

std::string move(int n, char direction) {
  return n > 0 ? "\x1b[" + std::to_string(n) + direction : std::string();
}

std::string joined(const std::vector<Row>& rows, size_t begin, size_t end) {
  std::string out;
  for (size_t row = begin; row < end; ++row) out += (row > begin ? "\n" : "") + rows[row].text;
  return out;
}

}  // namespace

void LineEditor::start() {
  buffer_.set({});
  input_ = {};
  at_ = history_.size();
  drawn_.clear();
  first_row_ = 0;
}

Typed LineEditor::read(AnswerScope& scope) {
  terminal_.edit_mode();
  start();
  Typed typed;
  // Keys that were typed ahead come first, and what they leave is drawn once.
  bool ended = handle_keys(typed);
  if (!ended) draw();
  while (!ended) {
    switch (terminal_.wait(keys_.is_unsettled() ? kEscapeTimeoutMs : -1)) {
      case Terminal::Event::kInput: {
        const std::string bytes = terminal_.read();
        if (bytes.empty()) return {};
        keys_.push(bytes);
        ended = handle_keys(typed);
        if (!ended) draw();
        break;
      }
      case Terminal::Event::kResize:
        redraw_resized();
        break;
      case Terminal::Event::kSignal:
        if (!interrupted()) break;
        scope.clear();
        throw_if_interrupted();
        ended = interrupt(typed);
        if (!ended) draw();
        break;
      case Terminal::Event::kTimeout:
        keys_.settle();
        break;
      case Terminal::Event::kEnd:
        return {};
    }
  }
  terminal_.answer_mode();
  return typed;
}

bool LineEditor::handle_keys(Typed& typed) {
  while (const auto key = keys_.next()) {
    if (handle(*key, typed)) return true;
  }
  return false;
}

bool LineEditor::handle(const Key& key, Typed& typed) {
  switch (key.kind) {
    case KeyKind::kText:
    case KeyKind::kPaste:
      buffer_.insert(key.text);
      return false;
    case KeyKind::kNewline:
      buffer_.insert("\n");
      return false;
    case KeyKind::kEnter:
      return enter(typed);
    case KeyKind::kInterrupt:
      return interrupt(typed);
    case KeyKind::kEndOfInput:
      if (!buffer_.text().empty()) {
        buffer_.apply(KeyKind::kDelete);
        return false;
      }
      leave();
      typed = {Typed::Kind::kEnd, {}};
      return true;
    case KeyKind::kSuspend:
      leave();
      terminal_.suspend();
      return false;
    case KeyKind::kClearScreen:
      terminal_.write("\x1b[H\x1b[2J");
      drawn_.clear();
      return false;
    case KeyKind::kUp:
    case KeyKind::kDown:
      if (!buffer_.apply(key.kind)) recall(key.kind == KeyKind::kUp);
      return false;
    default:
      buffer_.apply(key.kind);
      return false;
  }
}

bool LineEditor::enter(Typed& typed) {
  const std::string as_typed = buffer_.text();
  std::string text = as_typed;
  const bool whole = input_.enter(text);
  if (!whole) {
    buffer_.set(std::move(text));
    return false;
  }
  leave();
  if (!as_typed.empty() && (history_.empty() || history_.back() != as_typed)) history_.push_back(as_typed);
  typed = {Typed::Kind::kMessage, std::move(text)};
  return true;
}

bool LineEditor::interrupt(Typed& typed) {
  const bool was_empty = buffer_.text().empty();
  leave("^C");
  start();
  if (was_empty) typed = {Typed::Kind::kInterrupted, {}};
  return was_empty;
}

void LineEditor::recall(bool older) {
  if (older ? at_ == 0 : at_ == history_.size()) return;
  if (at_ == history_.size()) draft_ = buffer_.text();
  at_ += older ? -1 : 1;
  buffer_.set(at_ == history_.size() ? draft_ : history_[at_]);
}

void LineEditor::erase_drawn(std::string& out, size_t n_rows_above) {
  out += '\r' + move(static_cast<int>(n_rows_above), 'A') + "\x1b[J";
  drawn_.clear();
}

// Of a text that is higher than the screen, the rows around the cursor: what has left the screen cannot be
// drawn again.
void LineEditor::draw() {
  const Terminal::Size size = terminal_.size();
  const LineLayout layout = lay_out(kPrompt, buffer_.text(), buffer_.cursor(), size.columns);
  const auto height = static_cast<size_t>(size.rows);
  first_row_ = std::min(first_row_, layout.cursor_row);
  if (layout.cursor_row >= first_row_ + height) first_row_ = layout.cursor_row + 1 - height;
  const size_t end = std::min(layout.rows.size(), first_row_ + height);

  std::string out;
  erase_drawn(out, drawn_.empty() ? 0 : drawn_.size() - 1);
  out += joined(layout.rows, first_row_, end);
  out += '\r' + move(static_cast<int>(end - 1 - layout.cursor_row), 'A') + move(layout.cursor_column, 'C');
  terminal_.write(out);
  const auto begin = layout.rows.begin();
  drawn_column_ = layout.cursor_column;
  drawn_.assign(begin + static_cast<std::ptrdiff_t>(first_row_),
                begin + static_cast<std::ptrdiff_t>(layout.cursor_row) + 1);
}

// Most terminals wrap anew what they show; the cursor stays with its character.
void LineEditor::redraw_resized() {
  const int columns = terminal_.size().columns;
  auto n_rows_above = static_cast<size_t>(drawn_column_ / columns);
  for (size_t row = 0; row + 1 < drawn_.size(); ++row) {
    n_rows_above += static_cast<size_t>(wrapped_rows(drawn_[row].width, columns));
  }
  std::string out;
  erase_drawn(out, n_rows_above);
  terminal_.write(out);
  draw();
}

void LineEditor::leave(const std::string& behind) {
  const LineLayout layout = lay_out(kPrompt, buffer_.text(), buffer_.text().size(), terminal_.size().columns);
  std::string out;
  erase_drawn(out, drawn_.empty() ? 0 : drawn_.size() - 1);
  terminal_.write(out + joined(layout.rows, 0, layout.rows.size()) + behind + "\n");
  first_row_ = 0;
}

}  // namespace minfer
