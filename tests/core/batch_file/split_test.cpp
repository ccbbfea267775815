#include "core/batch_file/split.h"

#include <string>

#include "tests/support/catch.h"

using namespace minfer;

namespace {

// "1:text|3:text"
std::string pieces(std::string_view bytes, BatchFormat format, std::string_view delimiter = {}) {
  std::string out;
  for (const BatchPiece& piece : split_batch(bytes, format, delimiter)) {
    out += (out.empty() ? "" : "|") + std::to_string(piece.number) + ":" + std::string(piece.text);
  }
  return out;
}

}  // namespace

TEST_CASE("batch split: lines, blank ones left out but counted", "[batch]") {
  for (const BatchFormat format : {BatchFormat::kJsonLines, BatchFormat::kLines}) {
    CHECK(pieces("a\nb\n", format) == "1:a|2:b");
    CHECK(pieces("a\nb", format) == "1:a|2:b");  // the last newline may be missing
    CHECK(pieces("\n\na\n \t\nb\n\n", format) == "3:a|5:b");
    CHECK(pieces("a\r\n\r\nb\r\n", format) == "1:a|3:b");
    CHECK(pieces("a\r", format) == "1:a");
    CHECK(pieces("a\rb\n", format) == "1:a\rb");
    CHECK(pieces(" a \n", format) == "1: a ");
    CHECK(pieces("\xef\xbb\xbf"
                 "a\n\xef\xbb\xbf"
                 "b\n",
                 format) ==
          "1:a|2:\xef\xbb\xbf"
          "b");
    CHECK(pieces("", format).empty());
    CHECK(pieces("\n", format).empty());
    CHECK(pieces("\xef\xbb\xbf", format).empty());
    CHECK(pieces(std::string_view("a\0b\n", 4), format) == std::string("1:a\0b", 5));
  }
}

TEST_CASE("batch split: every byte between delimiters counts", "[batch]") {
  const auto by = [](std::string_view bytes, std::string_view delimiter) {
    return pieces(bytes, BatchFormat::kDelimited, delimiter);
  };
  CHECK(by("a---b", "---") == "1:a|2:b");
  CHECK(by("a---b---", "---") == "1:a|2:b");  // nothing behind the last one is no piece
  CHECK(by("---b", "---") == "1:|2:b");
  CHECK(by("a------b", "---") == "1:a|2:|3:b");
  CHECK(by("a\r\n\n---\nb\n", "---") == "1:a\r\n\n|2:\nb\n");
  CHECK(by("\xef\xbb\xbf"
           "a",
           "---") == "1:a");
  CHECK(by("", "---").empty());
  CHECK(by(std::string_view("x\ny\0z\0", 6), std::string_view("\0", 1)) == "1:x\ny|2:z");
}
