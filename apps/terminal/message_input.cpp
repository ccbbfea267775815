#include "apps/terminal/message_input.h"

#include <string_view>

namespace minfer {
namespace {

constexpr std::string_view kQuotes = "\"\"\"";

bool is_closed(std::string_view text) {
  return text.size() >= 2 * kQuotes.size() && text.ends_with(kQuotes);
}

// Newlines beside the quotes belong to them.
std::string without_quotes(std::string_view text) {
  text.remove_prefix(kQuotes.size());
  text.remove_suffix(kQuotes.size());
  if (text.starts_with('\n')) text.remove_prefix(1);
  if (text.ends_with('\n')) text.remove_suffix(1);
  return std::string(text);
}

}  // namespace

bool MessageInput::enter(std::string& text) {
  // A pasted text may begin with quotes that mean something else: it has lines before the first Enter.
  const bool opens = text.starts_with(kQuotes) && text.find('\n') == std::string::npos;
  in_block_ = text.starts_with(kQuotes) && (in_block_ || opens);
  if (in_block_) {
    if (is_closed(text)) {
      text = without_quotes(text);
      in_block_ = false;
      return true;
    }
    text += '\n';
    return false;
  }
  if (!text.ends_with('\\')) return true;
  text.back() = '\n';
  return false;
}

}  // namespace minfer
