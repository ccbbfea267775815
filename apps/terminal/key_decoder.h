// What a terminal sends, as keys. Escape sequences after ECMA-48 (1991) and xterm (Dickey, XTerm Control
// Sequences).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace minfer {

enum class KeyKind {
  kText,   // Key::text: characters as typed
  kPaste,  // Key::text: as pasted, newlines as \n
  kEnter,
  kNewline,  // Alt-Enter, Ctrl-J
  kInterrupt,
  kEndOfInput,
  kSuspend,
  kLeft,
  kRight,
  kWordLeft,
  kWordRight,
  kLineBegin,
  kLineEnd,
  kUp,
  kDown,
  kBackspace,
  kDelete,
  kEraseWordLeft,
  kEraseWordRight,
  kEraseToLineBegin,
  kEraseToLineEnd,
  kClearScreen,
  kIgnored,
};

struct Key {
  KeyKind kind = KeyKind::kIgnored;
  std::string text;
};

class KeyDecoder {
 public:
  void push(std::string_view bytes) { pending_ += bytes; }
  // The next key; nothing where the bytes so far hold no whole one.
  std::optional<Key> next();
  // Whether a key has begun that only time can tell from one that is whole: a single Escape.
  bool is_unsettled() const { return !pending_.empty() && !in_paste(); }
  // Nothing followed: the beginning of a key is dropped.
  void settle() { pending_.clear(); }

 private:
  // Takes n bytes off and makes a key of them.
  Key take(size_t n, KeyKind kind);
  bool in_paste() const;
  std::optional<Key> next_text();
  std::optional<Key> next_escape();
  std::optional<Key> next_sequence();
  std::optional<Key> next_paste();

  std::string pending_;
};

}  // namespace minfer
