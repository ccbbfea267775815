#include "gguf/cursor.h"

#include <string>

#include "tests/support/catch.h"
#include "tests/support/gguf_files.h"

namespace minfer::gguf {
namespace {

using test::Bytes;
using test::bytes_of;

template <typename Call>
std::string error_of(Call call) {
  try {
    call();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST_CASE("cursor: reads scalars and strings at any alignment", "[gguf][cursor]") {
  const Bytes bytes = bytes_of(std::string("\x01\x02\x03\x04\x05\x02\0\0\0\0\0\0\0hi!", 16));
  Cursor in(bytes, "f");
  CHECK(in.read<uint8_t>("a byte") == 1);
  CHECK(in.read<uint32_t>("a u32") == 0x05040302);
  CHECK(in.read_string("text") == "hi");
  CHECK(in.position() == 15);
  CHECK(in.left() == 1);
  CHECK(in.read<int8_t>("a byte") == '!');
  CHECK(in.left() == 0);
}

TEST_CASE("cursor: a read past the end names file, place and both sizes, and moves nothing",
          "[gguf][cursor]") {
  const Bytes bytes = bytes_of("abcdef");
  Cursor in(bytes, "dir/f.gguf");
  in.take(3, "start");
  in.enter("key", 7);
  in.set_name("some.name");
  CHECK(
      error_of([&] { in.read<uint32_t>("value"); }) ==
      "dir/f.gguf: has 6 bytes, needs at least 7 for the value of key 7 'some.name': incomplete download, or "
      "damaged?");
  CHECK(in.position() == 3);
  CHECK(in.take(3, "rest").size() == 3);
  CHECK(in.take(0, "nothing").empty());
  CHECK(error_of([&] { in.read<uint8_t>("value"); }).find("needs at least 7") != std::string::npos);
}

TEST_CASE("cursor: lengths near 2^64 do not wrap around", "[gguf][cursor]") {
  const Bytes bytes = bytes_of(std::string("\xff\xff\xff\xff\xff\xff\xff\xff", 8));
  Cursor in(bytes, "f");
  CHECK(error_of([&] { in.read_string("key"); }).find("needs at least 18446744073709551615") !=
        std::string::npos);
  CHECK(error_of([&] { Cursor(bytes, "f").take(~uint64_t{0} - 3, "key"); }) != "");
  CHECK(error_of([&] { Cursor(bytes, "f").require_room(uint64_t{1} << 61, 8, "items"); }) != "");
  CHECK(error_of([&] { Cursor(bytes, "f").require_room(uint64_t{1} << 63, 2, "items"); }) != "");
}

TEST_CASE("cursor: room for n items is counted exactly", "[gguf][cursor]") {
  const Bytes bytes = bytes_of("0123456789");
  const Cursor in(bytes, "f");
  CHECK(error_of([&] { in.require_room(5, 2, "items"); }) == "");
  CHECK(error_of([&] { in.require_room(6, 2, "items"); }) ==
        "f: header: 6 items of at least 2 bytes each, but the file has 10 bytes left of 10: incomplete "
        "download, or "
        "damaged?");
  CHECK(error_of([&] { in.require_room(0, 100, "items"); }) == "");
}

TEST_CASE("cursor: messages stay on one line whatever the file holds", "[gguf][cursor]") {
  CHECK(printable("a\nb\x7f") == "a\\x0ab\\x7f");
  CHECK(gguf::quoted("caf\xc3\xa9") == "'caf\xc3\xa9'");
  CHECK(gguf::quoted(std::string(200, 'x')) == "'" + std::string(96, 'x') + "...'");
  Cursor in({}, "two\nlines");
  in.enter("key", 0);
  in.set_name("x\ry");
  const std::string message = error_of([&] { in.fail("why"); });
  CHECK(message == "two\\x0alines: key 0 'x\\x0dy': why");
}

}  // namespace
}  // namespace minfer::gguf
