#include <random>

#include "apps/terminal/characters.h"
#include "apps/terminal/key_decoder.h"
#include "apps/terminal/line_buffer.h"
#include "apps/terminal/line_layout.h"
#include "apps/terminal/message_input.h"
#include "tests/support/catch.h"

namespace minfer {
namespace {

constexpr const char* kAccented = "e\xcc\x81";  // e and a combining acute accent: one character
constexpr const char* kCat = "\xe7\x8c\xab";    // two cells
constexpr const char* kUmlaut = "\xc3\xbc";

std::vector<KeyKind> kinds(std::string_view bytes) {
  KeyDecoder decoder;
  decoder.push(bytes);
  std::vector<KeyKind> all;
  while (const auto key = decoder.next()) all.push_back(key->kind);
  CHECK_FALSE(decoder.is_unsettled());
  return all;
}

// A buffer after keys as a terminal sends them.
LineBuffer typed(std::string_view bytes) {
  KeyDecoder decoder;
  decoder.push(bytes);
  LineBuffer buffer;
  while (const auto key = decoder.next()) {
    if (key->kind == KeyKind::kText || key->kind == KeyKind::kPaste) {
      buffer.insert(key->text);
    } else if (key->kind == KeyKind::kNewline) {
      buffer.insert("\n");
    } else {
      buffer.apply(key->kind);
    }
  }
  return buffer;
}

std::string with_cursor(std::string_view bytes) {
  const LineBuffer buffer = typed(bytes);
  return buffer.text().substr(0, buffer.cursor()) + "|" + buffer.text().substr(buffer.cursor());
}

std::vector<std::string> rows(std::string_view text, int columns) {
  std::vector<std::string> all;
  for (const Row& row : lay_out("> ", text, text.size(), columns).rows) all.push_back(row.text);
  return all;
}

}  // namespace

TEST_CASE("line editing: a character is what a terminal draws into the same cells", "[cli]") {
  CHECK(character_size("ab") == 1);
  CHECK(character_size(std::string(kAccented) + "x") == 3);
  CHECK(character_size(kCat) == 3);
  CHECK(character_size("\xff") == 1);
  CHECK(shown_width(kCat) == 2);
  CHECK(shown_width(kAccented) == 1);
  CHECK(shown_width(kUmlaut) == 1);
  const std::string text = std::string("a") + kAccented + kCat + "\xff" + kUmlaut;
  size_t at = text.size();
  for (const size_t wanted : {8, 7, 4, 1, 0}) {
    at = previous_character(text, at);
    CHECK(at == wanted);
  }
}

TEST_CASE("line editing: going back finds the characters that going forward finds", "[cli]") {
  std::mt19937 random(5);
  const std::vector<std::string> parts{"a",        kAccented,  kCat, kUmlaut,           "\xff",
                                       "\xcc\x81", "\xe7\x8c", "\n", "\xf0\x9f\xa6\x99"};
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (size_t n = 1 + random() % 8; n > 0; --n) text += parts[random() % parts.size()];
    std::vector<size_t> forward, backward;
    for (size_t at = 0; at < text.size(); at += character_size(std::string_view(text).substr(at))) {
      forward.insert(forward.begin(), at);
    }
    for (size_t at = text.size(); at > 0;) backward.push_back(at = previous_character(text, at));
    REQUIRE(backward == forward);
  }
}

TEST_CASE("line editing: nothing that a model writes reaches the terminal as a command", "[cli]") {
  CHECK(shown_text("a\tb\nc") == "a\tb\nc");
  CHECK(shown_text("\x1b]0;x\x07") == "\\x1b]0;x\\x07");
  CHECK(shown_text("\xc2\x9b"
                   "2J\x7f\r\xff") == "\\x9b2J\\x7f\\x0d\\xff");
  CHECK(shown_text(std::string(kCat) + kAccented) == std::string(kCat) + kAccented);
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  for (const char c : shown_text(all)) CHECK((c == '\n' || c == '\t' || (c >= 0x20 && c < 0x7f)));
}

TEST_CASE("line editing: keys as terminals send them", "[cli]") {
  using K = KeyKind;
  CHECK(kinds("\x1b[D\x1bOC\x1b[1;5D\x1b[1;3C\x1b[H\x1bOF\x1b[3~\x1b[A\x1b[B") ==
        std::vector<K>{K::kLeft, K::kRight, K::kWordLeft, K::kWordRight, K::kLineBegin, K::kLineEnd,
                       K::kDelete, K::kUp, K::kDown});
  CHECK(kinds("\r\n\x1b\r\x1b\n\x1b[13;2u") ==
        std::vector<K>{K::kEnter, K::kNewline, K::kNewline, K::kNewline, K::kNewline});
  CHECK(kinds("\x1b[1~\x1b[4~\x1b[7~\x1b[8~\x1b[15~\x1b[99999999999999999999~") ==
        std::vector<K>{K::kLineBegin, K::kLineEnd, K::kLineBegin, K::kLineEnd, K::kIgnored, K::kIgnored});
  CHECK(kinds("\x1b\x7f\x1b"
              "b\x1b"
              "f\x1b"
              "d\x1b"
              "x") ==
        std::vector<K>{K::kEraseWordLeft, K::kWordLeft, K::kWordRight, K::kEraseWordRight, K::kIgnored});
}

TEST_CASE("line editing: a key may come in pieces, and a single Escape is dropped", "[cli]") {
  const std::string bytes = std::string("a\x1b[1;5D") + kCat + "\x1b[200~x\r\ny\r\x1b[201~\x1b\r";
  KeyDecoder whole, pieces;
  whole.push(bytes);
  for (const char byte : bytes) {
    pieces.push({&byte, 1});
    while (const auto key = pieces.next()) {
      const auto wanted = whole.next();
      REQUIRE(wanted);
      CHECK(key->kind == wanted->kind);
      CHECK(key->text == wanted->text);
    }
  }
  CHECK_FALSE(whole.next());
  pieces.push("\x1b");
  CHECK_FALSE(pieces.next());
  CHECK(pieces.is_unsettled());
  pieces.settle();
  pieces.push("a");
  CHECK(pieces.next()->text == "a");
  pieces.push("\x1b[200~a\x1b");  // inside a paste there is nothing to settle
  CHECK_FALSE(pieces.next());
  CHECK_FALSE(pieces.is_unsettled());
}

TEST_CASE("line editing: moves and erasures", "[cli]") {
  CHECK(with_cursor("abc\x1b[D\x1b[Dx") == "ax|bc");
  CHECK(with_cursor(std::string("a") + kCat + kAccented + "\x7f\x7f") == "a|");
  CHECK(with_cursor(std::string(kCat) + "\x01\x1b[3~") == "|");
  CHECK(with_cursor("\x7f\x1b[3~\x1b[D\x1b[C") == "|");
  CHECK(with_cursor("one two  \x17") == "one |");
  CHECK(with_cursor("one two three\x1b"
                    "b\x1b"
                    "b\x0b") == "one |");
  CHECK(with_cursor("one two\x01\x1b"
                    "f\x15") == "| two");
  CHECK(with_cursor("one two\x01\x1b"
                    "d") == "| two");
  CHECK(with_cursor("ab\ncd\x01x\x05y") == "ab\nxcdy|");  // of the line
  CHECK(with_cursor("abc\nd\nef\x1b[A\x1b[A") == "a|bc\nd\nef");
  CHECK(with_cursor(std::string(kCat) + "bc\ndef\x1b[D\x1b[A") == std::string(kCat) + "b|c\ndef");
  CHECK(with_cursor("abc\nd\x01\x10\x05\x0e") == "abc\nd|");
  CHECK(with_cursor("\x1b[200~a\rb\x1b[201~c") == "a\nbc|");
  LineBuffer buffer = typed("ab");
  CHECK_FALSE(buffer.apply(KeyKind::kUp));
  CHECK_FALSE(buffer.apply(KeyKind::kDown));
}

TEST_CASE("line editing: rows of a long line, and where the cursor stands", "[cli]") {
  using Rows = std::vector<std::string>;
  CHECK(rows("", 10) == Rows{"> "});
  CHECK(rows("abcdefg", 10) == Rows{"> abcdefg"});
  CHECK(rows("abcdefgh", 10) == Rows{"> abcdefgh", ""});  // the cursor stands on the next row
  CHECK(rows("abcdefghi", 10) == Rows{"> abcdefgh", "i"});
  CHECK(rows("ab\ncd", 10) == Rows{"> ab", "  cd"});
  CHECK(rows(std::string("abcdefg") + kCat, 10) == Rows{"> abcdefg", kCat});
  CHECK(rows("a\tb", 20) == Rows{"> a     b"});
  CHECK(rows("a\x01", 20) == Rows{"> a\\x01"});

  const auto cursor = [](std::string_view text, size_t at, int columns) {
    const LineLayout layout = lay_out("> ", text, at, columns);
    return std::pair(layout.cursor_row, layout.cursor_column);
  };
  CHECK(cursor("abc", 0, 10) == std::pair(size_t{0}, 2));
  CHECK(cursor("abcdefghi", 8, 10) == std::pair(size_t{1}, 0));
  CHECK(cursor(std::string("abcdefg") + kCat, 7, 10) == std::pair(size_t{1}, 0));
  CHECK(cursor("ab\ncd", 3, 10) == std::pair(size_t{1}, 2));
  CHECK(cursor("abc", 3, 1).second == 0);
}

TEST_CASE("line editing: no row is wider than the terminal, and the rows hold the text", "[cli]") {
  std::mt19937 random(9);
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (size_t n = random() % 40; n > 0; --n) {
      text += std::vector<std::string>{"a", kCat, kAccented, kUmlaut, " "}[random() % 5];
    }
    const int columns = 4 + static_cast<int>(random() % 20);
    const LineLayout layout = lay_out("> ", text, text.size(), columns);
    std::string all;
    for (const Row& row : layout.rows) {
      REQUIRE(row.width <= columns);
      all += row.text;
    }
    REQUIRE(all == "> " + text);
    REQUIRE(layout.cursor_row == layout.rows.size() - 1);
    REQUIRE(layout.cursor_column < columns);
  }
}

TEST_CASE("line editing: what Enter does", "[cli]") {
  const auto enter = [](std::string text) {
    MessageInput input;
    const bool whole = input.enter(text);
    return std::pair(whole, text);
  };
  CHECK(enter("a") == std::pair(true, std::string("a")));
  CHECK(enter("a\\") == std::pair(false, std::string("a\n")));
  CHECK(enter("\"\"\"") == std::pair(false, std::string("\"\"\"\n")));
  CHECK(enter("\"\"\"a\"\"\"") == std::pair(true, std::string("a")));
  CHECK(enter("\"\"\"pasted\ncode") == std::pair(true, std::string("\"\"\"pasted\ncode")));

  MessageInput input;
  std::string text = "\"\"\"a\\";
  CHECK_FALSE(input.enter(text));
  text += "b\\";  // a backslash means nothing in a block
  CHECK_FALSE(input.enter(text));
  text += "\"\"\"";
  CHECK(input.enter(text));
  CHECK(text == "a\\\nb\\");
  text = "\"\"\"\nleft over";  // the block is closed
  CHECK(input.enter(text));
}

}  // namespace minfer
