#include "core/tokenizer/special_split.h"

#include <algorithm>
#include <random>

#include "tests/support/catch.h"
#include "tests/support/tiny_vocab.h"

namespace minfer {
namespace {

bool touches(const std::vector<ByteRange>& ranges, size_t begin, size_t end) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [&](const ByteRange& range) { return begin < range.end && range.begin < end; });
}

// The definition: one token after another, the longest first, each searched for in what the others left.
std::vector<SpecialMatch> split_plainly(const Vocab& vocab, std::vector<TokenId> tokens,
                                        std::string_view text, const std::vector<ByteRange>& literal) {
  std::vector<SpecialMatch> matches;
  std::vector<bool> taken(text.size());
  std::stable_sort(tokens.begin(), tokens.end(),
                   [&](TokenId a, TokenId b) { return vocab.text(a).size() > vocab.text(b).size(); });
  size_t from = 0;
  while (from < tokens.size()) {
    const size_t size = vocab.text(tokens[from]).size();
    size_t to = from;
    while (to < tokens.size() && vocab.text(tokens[to]).size() == size) ++to;
    for (size_t at = 0; size > 0 && at + size <= text.size(); ++at) {
      for (size_t i = from; i < to; ++i) {
        const auto begin = taken.begin() + static_cast<std::ptrdiff_t>(at);
        const auto end = begin + static_cast<std::ptrdiff_t>(size);
        if (text.substr(at, size) != vocab.text(tokens[i]) || std::find(begin, end, true) != end) continue;
        if (vocab.is_hidden(tokens[i]) && touches(literal, at, at + size)) continue;
        std::fill(begin, end, true);
        matches.push_back({at, tokens[i]});
      }
    }
    from = to;
  }
  std::sort(matches.begin(), matches.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
  return matches;
}

std::vector<ByteRange> random_ranges(std::mt19937& random, size_t size) {
  std::vector<ByteRange> ranges;
  for (size_t at = random() % 8; at < size; at += random() % 8) {
    ranges.push_back({at, std::min(size, at + 1 + random() % 4)});
    at = ranges.back().end;
  }
  return ranges;
}

Vocab make_vocab(const gguf::Metadata& metadata) {
  return Vocab(metadata, {});
}

}  // namespace

TEST_CASE("special_split: one scan finds what a search for each token, longest first, finds", "[tokenizer]") {
  std::mt19937 random(3);
  for (int round = 0; round < 500; ++round) {
    const auto random_text = [&](size_t n) {
      std::string text(n, 'a');
      for (char& c : text) c = "ab\xff"[random() % 3];
      return text;
    };
    test::TinyVocab tiny;
    tiny.add("unrelated");
    std::vector<TokenId> tokens;
    std::vector<std::string> seen;
    for (uint32_t i = 0; i < 1 + random() % 10; ++i) {
      const std::string text = random_text(1 + random() % 6);
      if (std::find(seen.begin(), seen.end(), text) != seen.end()) continue;
      seen.push_back(text);
      tokens.push_back(tiny.add(text, random() % 2 == 0 ? TokenType::kControl : TokenType::kUserDefined));
    }
    const auto file = test::vocab_file(tiny);
    const auto reader = gguf::Reader::from_bytes(file);
    const Vocab vocab = make_vocab(reader.metadata());
    const SpecialSplitter splitter(vocab, tokens);
    for (int k = 0; k < 20; ++k) {
      const std::string text = random_text(random() % 30);
      const auto literal = k % 2 == 0 ? std::vector<ByteRange>() : random_ranges(random, text.size());
      const auto wanted = split_plainly(vocab, tokens, text, literal);
      const auto found = splitter.split(text, literal);
      REQUIRE(found.size() == wanted.size());
      for (size_t i = 0; i < found.size(); ++i) {
        REQUIRE(found[i].begin == wanted[i].begin);
        REQUIRE(found[i].id == wanted[i].id);
      }
    }
  }
}

TEST_CASE("special_split: empty tokens are no tokens, and of equal ones the last counts", "[tokenizer]") {
  test::TinyVocab tiny;
  const TokenId empty = tiny.add("");
  const TokenId first = tiny.add("xy");
  const TokenId last = tiny.add("xy");
  const auto file = test::vocab_file(tiny);
  const auto reader = gguf::Reader::from_bytes(file);
  const Vocab vocab = make_vocab(reader.metadata());
  const auto found = SpecialSplitter(vocab, {empty, first, last}).split("axyxyb");
  REQUIRE(found.size() == 2);
  CHECK(found[0].id == last);
  CHECK(vocab.find("xy") == last);
  CHECK(vocab.find("") == kNoToken);
}

}  // namespace minfer
