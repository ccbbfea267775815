#include "core/stop_strings.h"

#include <algorithm>
#include <random>

#include "core/error.h"
#include "tests/support/catch.h"

using namespace minfer;

namespace {

using Stops = std::vector<std::string>;

// The text before the first of any: what has to come out, however the text comes in.
size_t first_match(const std::string& text, const Stops& stops) {
  size_t first = std::string::npos;
  for (const std::string& stop : stops) first = std::min(first, text.find(stop));
  return first;
}

// How many bytes at the end of `text` may be the beginning of a match: the longest possible.
size_t longest_beginning(const std::string& text, const Stops& stops) {
  for (size_t n = text.size(); n > 0; --n) {
    const std::string tail = text.substr(text.size() - n);
    if (std::any_of(stops.begin(), stops.end(), [&](const auto& stop) { return stop.starts_with(tail); }))
      return n;
  }
  return 0;
}

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  size_t up_to(size_t n) { return engine_() % (n + 1); }
  std::string text(size_t size, size_t n_letters) {
    std::string out;
    for (size_t i = 0; i < size; ++i) out += static_cast<char>('a' + up_to(n_letters - 1));
    return out;
  }
  Stops stops(size_t n_letters) {
    Stops out;
    for (size_t i = up_to(3) + 1; i > 0; --i) out.push_back(text(up_to(4) + 1, n_letters));
    return out;
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace

TEST_CASE("stop_strings: equal to searching the whole text, whatever the pieces", "[stop_strings]") {
  Random random(5);
  size_t n_matched = 0, n_overlapping = 0;
  for (int i = 0; i < 20000; ++i) {
    const size_t n_letters = 1 + random.up_to(2);
    const Stops stops = random.stops(n_letters);
    const std::string text = random.text(random.up_to(24), n_letters);
    StopStrings stream(stops);
    std::string out, seen;
    while (seen.size() < text.size() && !stream.matched()) {
      const std::string piece = text.substr(seen.size(), random.up_to(4));
      seen += piece;
      out += stream.push(piece);
      // All that can be told from what was seen is out; nothing else is held back.
      if (!stream.matched() && first_match(seen, stops) == std::string::npos) {
        REQUIRE(out.size() == seen.size() - longest_beginning(seen, stops));
      }
    }
    out += stream.finish();
    INFO(text << " after " << seen.size());
    REQUIRE(out == text.substr(0, first_match(text, stops)));
    REQUIRE(stream.matched() == (first_match(text, stops) != std::string::npos));
    n_matched += stream.matched();
    n_overlapping += stream.matched() && seen.size() > out.size() + 4;
  }
  CHECK(n_matched > 5000);
  CHECK(n_matched < 19500);
  CHECK(n_overlapping > 100);
}

TEST_CASE("stop_strings: it ends with the byte that decides, and takes no more", "[stop_strings]") {
  StopStrings stream({"END"});
  CHECK(stream.push("the E") == "the ");
  CHECK(stream.push("N") == "");
  CHECK_FALSE(stream.matched());
  CHECK(stream.push("D and more") == "");
  CHECK(stream.matched());
  CHECK(stream.push("more") == "");
  CHECK(stream.finish() == "");
}

TEST_CASE("stop_strings: a beginning that comes to nothing is text after all", "[stop_strings]") {
  StopStrings stream({"\n\nUser:"});
  CHECK(stream.push("a\n") == "a");
  CHECK(stream.push("\n") == "");
  CHECK(stream.push("\n") == "\n");  // the other two may still begin a match
  CHECK(stream.push("Use") == "");
  CHECK(stream.push("d") == "\n\nUsed");
  CHECK(stream.push("\n") == "");
  CHECK(stream.finish() == "\n");
  CHECK_FALSE(stream.matched());
}

TEST_CASE("stop_strings: a longer one that begins earlier is waited for", "[stop_strings]") {
  for (const auto& [last, out] : {std::pair<std::string, std::string>{"c", ""}, {"d", "a"}, {"", "a"}}) {
    StopStrings stream({"b", "abc"});
    CHECK(stream.push("ab") == "");
    CHECK_FALSE(stream.matched());
    std::string rest = stream.push(last);
    rest += stream.finish();
    CHECK(rest == out);
    CHECK(stream.matched());
  }
}

TEST_CASE("stop_strings: without any, text passes; an empty one is refused", "[stop_strings]") {
  StopStrings none({});
  CHECK(none.push("abc") == "abc");
  CHECK(none.finish() == "");
  CHECK_THROWS_AS(StopStrings({"a", ""}), Error);
}
