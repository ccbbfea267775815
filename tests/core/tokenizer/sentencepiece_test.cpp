#include "core/error.h"
#include "tests/support/catch.h"
#include "tests/support/tiny_vocab.h"

namespace minfer {
namespace {

using Ids = std::vector<TokenId>;
using test::TinyTokenizer;
using test::TinyVocab;

const std::string kSpace = "\xe2\x96\x81";
constexpr TokenId kFirstByte = 3;  // <0x00> in sentencepiece_vocab
constexpr EncodeOptions kPlain{.add_special = false, .parse_special = false};
constexpr EncodeOptions kParse{.add_special = false, .parse_special = true};

TokenId byte_id(int byte) {
  return kFirstByte + byte;
}

}  // namespace

TEST_CASE("sentencepiece: pairs merge by score, the leftmost of equal ones first", "[tokenizer]") {
  TinyVocab vocab = test::sentencepiece_vocab();
  const TokenId a = vocab.add("a"), b = vocab.add("b"), space = vocab.add(kSpace);
  const TokenId ab = vocab.add("ab", TokenType::kNormal, -2.0f);
  const TokenId ba = vocab.add("ba", TokenType::kNormal, -1.0f);
  const TokenId aa = vocab.add("aa", TokenType::kNormal, -0.0f);
  const TokenId bb = vocab.add("bb", TokenType::kNormal, 0.0f);
  const TinyTokenizer tokenizer(vocab);
  CHECK(tokenizer->encode("ab", kPlain) == Ids{space, ab});
  CHECK(tokenizer->encode("aba", kPlain) == Ids{space, a, ba});
  CHECK(tokenizer->encode("aaa", kPlain) == Ids{space, aa, a});
  CHECK(tokenizer->encode("aabb", kPlain) == Ids{space, aa, bb});
  CHECK(tokenizer->encode("bbb", kPlain) == Ids{space, bb, b});
}

TEST_CASE("sentencepiece: what is no token becomes its bytes", "[tokenizer]") {
  const TinyTokenizer tokenizer(test::sentencepiece_vocab());
  CHECK(tokenizer->encode("\xc3\xa9", kPlain) ==
        Ids{byte_id(0xe2), byte_id(0x96), byte_id(0x81), byte_id(0xc3), byte_id(0xa9)});
  CHECK(tokenizer->token_bytes(byte_id(0xc3)) == "\xc3");
  CHECK(tokenizer->encode("", kPlain).empty());
}

TEST_CASE("sentencepiece: a byte token's or a control token's name in text is text", "[tokenizer]") {
  TinyVocab vocab = test::sentencepiece_vocab();
  for (const char* text : {"<", "s", ">", "<s", "0", "x", "A", "<0", "<0x", "<0x0", "<0x0A"}) vocab.add(text);
  vocab.add(kSpace);
  const TinyTokenizer tokenizer(vocab);
  for (const char* text : {"<s>", "<0x0A>"}) {
    const Ids ids = tokenizer->encode(text, kPlain);
    CHECK(tokenizer->decode(ids) == text);
    CHECK(std::count(ids.begin(), ids.end(), tokenizer->bos_id()) == 0);
    CHECK(std::count(ids.begin(), ids.end(), byte_id(0x0a)) == 0);
  }
  CHECK(tokenizer->encode("<s>", kParse) == Ids{1});
}

TEST_CASE("sentencepiece: a space goes before every stretch of text, and decoding takes it away",
          "[tokenizer]") {
  TinyVocab vocab = test::sentencepiece_vocab();
  const TokenId a = vocab.add("a"), space = vocab.add(kSpace), space_a = vocab.add(kSpace + "a");
  const TokenId user = vocab.add("[x]", TokenType::kUserDefined);
  const TinyTokenizer tokenizer(vocab);
  CHECK(tokenizer->encode("a", kPlain) == Ids{space_a});
  CHECK(tokenizer->encode(" a", kPlain) == Ids{space, space_a});
  CHECK(tokenizer->encode("a[x]a", kPlain) == Ids{space_a, user, space_a});
  CHECK(tokenizer->encode("[x]", kPlain) == Ids{user});
  CHECK(tokenizer->encode("a<s>a", kParse) == Ids{space_a, 1, space_a});
  CHECK(tokenizer->decode(Ids{1, space_a, user, space_a}) == "a[x]a");
  CHECK(tokenizer->decode(Ids{1, space_a}, true) == "<s>a");
  CHECK(tokenizer->decode(Ids{space, space_a, space_a}) == " a a");
  CHECK(tokenizer->decode(Ids{a, space_a}) == "a a");
  CHECK(tokenizer->token_bytes(space_a) == " a");

  vocab.more = [](gguf::Writer& file) { file.add_bool("tokenizer.ggml.add_space_prefix", false); };
  const TinyTokenizer plain(vocab);
  CHECK(plain->encode("a", kPlain) == Ids{a});
  CHECK(plain->encode(" a", kPlain) == Ids{space_a});
  CHECK(plain->decode(Ids{space_a}) == " a");
}

TEST_CASE("sentencepiece: without byte tokens the unknown token stands for what is no token", "[tokenizer]") {
  TinyVocab vocab;
  vocab.model = "llama";
  vocab.pre.clear();
  const TokenId unknown = vocab.add("<unk>", TokenType::kUnknown);
  const TokenId a = vocab.add("a"), raw = vocab.add("\xc3"), space = vocab.add(kSpace);
  vocab.more = [](gguf::Writer& file) {
    file.add_bool("tokenizer.ggml.add_bos_token", false);
    file.add_i32("tokenizer.ggml.bos_token_id", -1);
  };
  const TinyTokenizer tokenizer(vocab);
  CHECK(tokenizer->encode("a\xc3\xa9") == Ids{space, a, raw, unknown});
  CHECK(tokenizer->bos_id() == -1);
}

TEST_CASE("sentencepiece: scores of any value are an order", "[tokenizer]") {
  TinyVocab vocab = test::sentencepiece_vocab();
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for (const char* text : {"a", "b", "c"}) vocab.add(text);
  vocab.add(kSpace);
  vocab.add("ab", TokenType::kNormal, nan);
  vocab.add("bc", TokenType::kNormal, -inf);
  vocab.add("abc", TokenType::kNormal, inf);
  vocab.add("ca", TokenType::kNormal, 1e38f);
  const TinyTokenizer tokenizer(vocab);
  CHECK(tokenizer->decode(tokenizer->encode("abcabcaabbcc", kPlain)) == "abcabcaabbcc");
}

TEST_CASE("sentencepiece: there is no pre-tokenizer to choose", "[tokenizer]") {
  CHECK(test::refusal(test::sentencepiece_vocab(), {.pretokenizer = "gpt-2"}).code ==
        static_cast<int>(ExitCode::kUsage));
  CHECK(TinyTokenizer(test::sentencepiece_vocab())->pretokenizer().empty());
  CHECK(TinyTokenizer(test::sentencepiece_vocab())->model() == "llama");
}

}  // namespace minfer
