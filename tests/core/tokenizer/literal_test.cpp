#include <vector>

#include "tests/support/catch.h"
#include "tests/support/tiny_vocab.h"

namespace minfer {
namespace {

using Ids = std::vector<TokenId>;
using test::TinyTokenizer;
using test::TinyVocab;

Ids encode_with(const Tokenizer& tokenizer, std::string_view text, const std::vector<ByteRange>& literal) {
  return tokenizer.encode(text, {.add_special = false, .parse_special = true, .literal = literal});
}

}  // namespace

TEST_CASE("literal: a control token that touches what a user wrote stays text", "[tokenizer]") {
  TinyVocab vocab = test::byte_level_vocab();
  const TokenId end = vocab.add("<e>", TokenType::kControl);
  const TinyTokenizer tokenizer(vocab);
  CHECK(encode_with(*tokenizer, "<e>a<e>", {}) == Ids{end, 'a', end});
  CHECK(encode_with(*tokenizer, "<e>a<e>", {{3, 4}}) == Ids{end, 'a', end});
  CHECK(encode_with(*tokenizer, "<e><e><e>", {{3, 6}}) == Ids{end, '<', 'e', '>', end});
  for (const ByteRange range : {ByteRange{0, 1}, ByteRange{1, 2}, ByteRange{2, 3}, ByteRange{2, 9}}) {
    CHECK(encode_with(*tokenizer, "<e>abcdef", {range}) == Ids{'<', 'e', '>', 'a', 'b', 'c', 'd', 'e', 'f'});
  }
}

TEST_CASE("literal: a shorter control token beside what a user wrote is still found", "[tokenizer]") {
  TinyVocab vocab = test::byte_level_vocab();
  const TokenId shorter = vocab.add("<a>", TokenType::kControl);
  vocab.add("<a>b", TokenType::kControl);
  const TinyTokenizer tokenizer(vocab);
  CHECK(encode_with(*tokenizer, "<a>b", {{3, 4}}) == Ids{shorter, 'b'});
}

TEST_CASE("literal: user-defined tokens are found everywhere", "[tokenizer]") {
  TinyVocab vocab = test::byte_level_vocab();
  const TokenId tool = vocab.add("[x]", TokenType::kUserDefined);
  const TinyTokenizer tokenizer(vocab);
  CHECK(encode_with(*tokenizer, "[x][x]", {{0, 4}}) == Ids{tool, tool});
}

TEST_CASE("literal: text is tokenized across the borders of ranges", "[tokenizer]") {
  TinyVocab bpe = test::byte_level_vocab();
  const TokenId both = bpe.add_merge("a", "b");
  CHECK(encode_with(*TinyTokenizer(bpe), "ab", {{1, 2}}) == Ids{both});

  TinyVocab spm = test::sentencepiece_vocab();
  for (const char* text : {"a", "b", "\xe2\x96\x81"}) spm.add(text, TokenType::kNormal, -2.0f);
  const TokenId pair = spm.add("ab", TokenType::kNormal, -1.0f);
  const TinyTokenizer tokenizer(spm);
  const TokenId space = tokenizer->find("\xe2\x96\x81");
  CHECK(encode_with(*tokenizer, "ab", {{1, 2}}) ==
        Ids{space, pair});  // one prefix, at the stretch's beginning
}

TEST_CASE("sentencepiece: a text that continues another one gets no space before it", "[tokenizer]") {
  TinyVocab vocab = test::sentencepiece_vocab();
  for (const char* text : {"a", "\xe2\x96\x81"}) vocab.add(text, TokenType::kNormal, -1.0f);
  const TinyTokenizer tokenizer(vocab);
  const TokenId a = tokenizer->find("a"), space = tokenizer->find("\xe2\x96\x81"),
                end = tokenizer->find("</s>");
  const EncodeOptions options{.add_special = false, .parse_special = true, .continues = true};
  CHECK(tokenizer->encode("a</s>a", options) == Ids{a, end, space, a});  // but the stretches behind it do
  CHECK(tokenizer->encode(" a", options) == Ids{space, a});
  CHECK(tokenizer->encode("</s>a", options) == Ids{end, space, a});
}

}  // namespace minfer
