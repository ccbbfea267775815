#include "apps/terminal/key_decoder.h"

#include <cstdint>
#include <cstdlib>

#include "core/utf8.h"

namespace minfer {
namespace {

constexpr char kEscape = '\x1b';
constexpr std::string_view kPasteBegin = "\x1b[200~";
constexpr std::string_view kPasteEnd = "\x1b[201~";
constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD

KeyKind control_key(char byte) {
  switch (byte) {
    case 0x01:
      return KeyKind::kLineBegin;  // Ctrl-A
    case 0x02:
      return KeyKind::kLeft;  // Ctrl-B
    case 0x03:
      return KeyKind::kInterrupt;
    case 0x04:
      return KeyKind::kEndOfInput;
    case 0x05:
      return KeyKind::kLineEnd;  // Ctrl-E
    case 0x06:
      return KeyKind::kRight;  // Ctrl-F
    case 0x08:
    case 0x7f:
      return KeyKind::kBackspace;
    case 0x0a:
      return KeyKind::kNewline;  // Ctrl-J
    case 0x0b:
      return KeyKind::kEraseToLineEnd;  // Ctrl-K
    case 0x0c:
      return KeyKind::kClearScreen;  // Ctrl-L
    case 0x0d:
      return KeyKind::kEnter;
    case 0x0e:
      return KeyKind::kDown;  // Ctrl-N
    case 0x10:
      return KeyKind::kUp;  // Ctrl-P
    case 0x15:
      return KeyKind::kEraseToLineBegin;  // Ctrl-U
    case 0x17:
      return KeyKind::kEraseWordLeft;  // Ctrl-W
    case 0x1a:
      return KeyKind::kSuspend;  // Ctrl-Z
    default:
      return KeyKind::kIgnored;
  }
}

// Alt and a key, sent as Escape and the key.
KeyKind alt_key(char byte) {
  switch (byte) {
    case '\r':
    case '\n':
      return KeyKind::kNewline;
    case 'b':
      return KeyKind::kWordLeft;
    case 'f':
      return KeyKind::kWordRight;
    case 'd':
      return KeyKind::kEraseWordRight;
    case 0x08:
    case 0x7f:
      return KeyKind::kEraseWordLeft;
    default:
      return KeyKind::kIgnored;
  }
}

// `first` and `modifier`: the sequence's numbers, 0 where they are absent.
KeyKind sequence_key(char final, long first, long modifier) {
  switch (final) {
    case 'A':
      return KeyKind::kUp;
    case 'B':
      return KeyKind::kDown;
    case 'C':
      return modifier > 2 ? KeyKind::kWordRight : KeyKind::kRight;  // with Alt or Ctrl
    case 'D':
      return modifier > 2 ? KeyKind::kWordLeft : KeyKind::kLeft;
    case 'H':
      return KeyKind::kLineBegin;
    case 'F':
      return KeyKind::kLineEnd;
    case 'u':
      return first == '\r' ? KeyKind::kNewline : KeyKind::kIgnored;  // Enter with Shift, Alt or Ctrl
    case '~':
      if (first == 1 || first == 7) return KeyKind::kLineBegin;
      if (first == 4 || first == 8) return KeyKind::kLineEnd;
      if (first == 3) return modifier > 2 ? KeyKind::kEraseWordRight : KeyKind::kDelete;
      return KeyKind::kIgnored;
    default:
      return KeyKind::kIgnored;
  }
}

std::string with_newlines(std::string_view pasted) {
  std::string out;
  for (size_t i = 0; i < pasted.size(); ++i) {
    if (pasted[i] != '\r') {
      out += pasted[i];
    } else if (i + 1 == pasted.size() || pasted[i + 1] != '\n') {
      out += '\n';
    }
  }
  return out;
}

bool is_control(char byte) {
  return static_cast<uint8_t>(byte) < 0x20 || byte == 0x7f;
}

}  // namespace

bool KeyDecoder::in_paste() const {
  return pending_.starts_with(kPasteBegin);
}

Key KeyDecoder::take(size_t n, KeyKind kind) {
  pending_.erase(0, n);
  return {kind, {}};
}

std::optional<Key> KeyDecoder::next() {
  if (pending_.empty()) return std::nullopt;
  if (pending_[0] == kEscape) return in_paste() ? next_paste() : next_escape();
  if (pending_[0] == '\t') {
    pending_.erase(0, 1);
    return Key{KeyKind::kText, "\t"};
  }
  if (is_control(pending_[0])) return take(1, control_key(pending_[0]));
  return next_text();
}

// As much as there is up to the next control character.
std::optional<Key> KeyDecoder::next_text() {
  std::string text;
  size_t at = 0;
  while (at < pending_.size() && !is_control(pending_[at])) {
    const std::string_view rest = std::string_view(pending_).substr(at);
    const int size = utf8_char_size(rest);
    if (size == kUtf8Incomplete) break;
    text += size == kUtf8Invalid ? kReplacement : rest.substr(0, static_cast<size_t>(size));
    at += size == kUtf8Invalid ? 1 : static_cast<size_t>(size);
  }
  if (at == 0) return std::nullopt;
  pending_.erase(0, at);
  return Key{KeyKind::kText, std::move(text)};
}

std::optional<Key> KeyDecoder::next_escape() {
  if (pending_.size() < 2) return std::nullopt;
  switch (pending_[1]) {
    case kEscape:
      return take(1, KeyKind::kIgnored);
    case '[':
      return next_sequence();
    case 'O':
      if (pending_.size() < 3) return std::nullopt;
      return take(3, sequence_key(pending_[2], 0, 0));
    default:
      return take(2, alt_key(pending_[1]));
  }
}

std::optional<Key> KeyDecoder::next_sequence() {
  size_t end = 2;
  while (end < pending_.size() && pending_[end] >= 0x20 && pending_[end] < 0x40) ++end;
  if (end == pending_.size()) return std::nullopt;
  if (pending_[end] < 0x40 || pending_[end] > 0x7e) return take(end, KeyKind::kIgnored);  // broken off
  const size_t semicolon = pending_.find(';');
  const long first = std::strtol(pending_.c_str() + 2, nullptr, 10);
  const long modifier = semicolon < end ? std::strtol(pending_.c_str() + semicolon + 1, nullptr, 10) : 0;
  return take(end + 1, sequence_key(pending_[end], first, modifier));
}

std::optional<Key> KeyDecoder::next_paste() {
  const size_t end = pending_.find(kPasteEnd);
  if (end == std::string::npos) return std::nullopt;
  Key key{KeyKind::kPaste,
          with_newlines(std::string_view(pending_).substr(0, end).substr(kPasteBegin.size()))};
  pending_.erase(0, end + kPasteEnd.size());
  return key;
}

}  // namespace minfer
