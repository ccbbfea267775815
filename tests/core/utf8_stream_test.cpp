#include "core/utf8_stream.h"

#include <cstdint>
#include <random>

#include "core/utf8.h"
#include "tests/support/catch.h"

namespace minfer {
namespace {

// The plain decoder that the stream is compared with: code point by code point, by the definition of UTF-8.
bool decodes(const std::string& s) {
  const size_t n = s.size();
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(s[i]); };
  const size_t wanted = byte(0) < 0x80         ? 1
                        : (byte(0) >> 5) == 6  ? 2
                        : (byte(0) >> 4) == 14 ? 3
                        : (byte(0) >> 3) == 30 ? 4
                                               : 0;
  if (wanted != n) return false;
  uint32_t code = n == 1 ? byte(0) : byte(0) & (0xffu >> (n + 1));
  for (size_t i = 1; i < n; ++i) {
    if ((byte(i) >> 6) != 2) return false;
    code = code << 6 | (byte(i) & 0x3fu);
  }
  constexpr uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  return code >= kSmallest[n] && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
}

// Whether some bytes behind `s` make it one character. The third and fourth byte are free once the second is
// fixed.
bool completable(const std::string& s) {
  for (size_t n_more = 1; n_more <= 3 && s.size() + n_more <= 4; ++n_more) {
    for (int second = 0x80; second <= 0xbf; ++second) {
      std::string whole = s;
      whole += static_cast<char>(second);
      whole.resize(s.size() + n_more, '\x80');
      if (decodes(whole)) return true;
    }
  }
  return false;
}

std::string random_text(std::mt19937& random, size_t n_pieces) {
  std::string text;
  for (size_t i = 0; i < n_pieces; ++i) {
    if (random() % 3 == 0) {
      text += static_cast<char>(random() % 256);
    } else {
      constexpr uint32_t kEnds[] = {0x80, 0x800, 0xd800, 0x10000, 0x110000};
      uint32_t code = random() % kEnds[random() % 5];
      if (code >= 0xd800 && code <= 0xdfff) code = 0x20ac;
      text += utf8_encode(code).view();
    }
  }
  return text;
}

}  // namespace

TEST_CASE("utf8: the size of a first character is the plain decoder's, for every prefix of two bytes",
          "[utf8]") {
  for (int first = 0; first < 256; ++first) {
    for (int second = 0; second < 256; ++second) {
      std::string s{static_cast<char>(first), static_cast<char>(second), '\x80', '\x80'};
      int wanted = kUtf8Invalid;
      for (size_t n = 1; n <= 4; ++n) {
        if (decodes(s.substr(0, n))) wanted = static_cast<int>(n);
      }
      if (utf8_char_size(s) != wanted) FAIL(first << ' ' << second << ": " << utf8_char_size(s));
      const std::string two = s.substr(0, 2);
      const bool incomplete = utf8_char_size(two) == kUtf8Incomplete;
      if (incomplete != (wanted > 2)) FAIL(first << ' ' << second << " as an end");
    }
  }
}

TEST_CASE("utf8: encoding reaches every scalar value", "[utf8]") {
  for (uint32_t code = 0; code <= 0x10ffff; code += code < 0x3000 ? 1 : 61) {
    if (code >= 0xd800 && code <= 0xdfff) continue;
    if (!decodes(std::string(utf8_encode(code).view()))) FAIL(code);
  }
}

TEST_CASE("utf8_stream: an incomplete character waits for its end", "[utf8]") {
  Utf8Stream stream;
  CHECK(stream.push("a\xe2") == "a");
  CHECK(stream.push("\x82") == "");
  CHECK(stream.push("\xac"
                    "b") ==
        "\xe2\x82\xac"
        "b");
  CHECK(stream.push("\xf0\x9f\xa6") == "");
  CHECK(stream.finish() == "\xf0\x9f\xa6");
  CHECK(stream.finish() == "");
}

TEST_CASE("utf8_stream: bytes that no character begins with pass at once", "[utf8]") {
  Utf8Stream stream;
  CHECK(stream.push("\xff") == "\xff");
  CHECK(stream.push("\x80\x80") == "\x80\x80");
  CHECK(stream.push("\xc0") == "\xc0");
  CHECK(stream.push("\xed\xa0") == "\xed\xa0");      // a surrogate
  CHECK(stream.push("\xe2\x82\xe2") == "\xe2\x82");  // cut short by another start
  CHECK(stream.push("x") == "\xe2x");
}

TEST_CASE("utf8_stream: any bytes in any chunks come out whole, and only what may still be completed waits",
          "[utf8]") {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    const std::string text = random_text(random, 1 + random() % 30);
    Utf8Stream stream;
    std::string out;
    size_t at = 0;
    while (at < text.size()) {
      const size_t n = std::min<size_t>(random() % 5, text.size() - at);
      out += stream.push(text.substr(at, n));
      at += n;
      const std::string held = text.substr(out.size(), at - out.size());
      REQUIRE(text.compare(0, out.size(), out) == 0);
      REQUIRE(held.size() <= 3);
      if (!held.empty()) REQUIRE(completable(held));
      // Nothing longer could have waited.
      for (size_t more = held.size() + 1; more <= 3 && more <= at; ++more) {
        REQUIRE_FALSE(completable(text.substr(at - more, more)));
      }
    }
    out += stream.finish();
    REQUIRE(out == text);
  }
}

}  // namespace minfer
