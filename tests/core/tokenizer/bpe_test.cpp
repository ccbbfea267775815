#include "core/error.h"
#include "tests/support/catch.h"
#include "tests/support/tiny_vocab.h"

namespace minfer {
namespace {

using Ids = std::vector<TokenId>;
using test::TinyTokenizer;
using test::TinyVocab;

constexpr EncodeOptions kParse{.add_special = true, .parse_special = true};

}  // namespace

TEST_CASE("bpe: merges go by rank, then from the left", "[tokenizer]") {
  TinyVocab vocab = test::byte_level_vocab();
  const TokenId bc = vocab.add_merge("b", "c");
  const TokenId ab = vocab.add_merge("a", "b");
  const TokenId abc = vocab.add_merge("a", "bc");
  const TinyTokenizer tokenizer(vocab);
  CHECK(tokenizer->encode("abc") == Ids{abc});
  CHECK(tokenizer->encode("ab") == Ids{ab});
  CHECK(tokenizer->encode("aabb") == Ids{'a', ab, 'b'});  // a byte's id is its value here
  CHECK(tokenizer->encode("bcbc") == Ids{bc, bc});
  CHECK(tokenizer->decode(tokenizer->encode("aabcb")) == "aabcb");
}

TEST_CASE("bpe: a byte's token is the one that spells it in the byte alphabet", "[tokenizer]") {
  const TinyTokenizer tokenizer(test::byte_level_vocab());
  for (int byte = 0; byte < 256; ++byte) {
    const std::string text(1, static_cast<char>(byte));
    REQUIRE(tokenizer->encode(text) == Ids{byte});
    REQUIRE(tokenizer->token_bytes(byte) == text);
    REQUIRE(tokenizer->find(test::spelled(text)) == byte);
  }
}

TEST_CASE("bpe: merges stay inside a pre-token", "[tokenizer]") {
  TinyVocab vocab = test::byte_level_vocab();
  vocab.add_merge("a", test::spelled(" "));
  const TinyTokenizer tokenizer(vocab);
  CHECK(tokenizer->encode("a a") == Ids{'a', ' ', 'a'});
}

TEST_CASE("bpe: llama-bpe takes a pre-token that is in the vocabulary whole, gpt-2 does not", "[tokenizer]") {
  TinyVocab vocab = test::byte_level_vocab();
  const TokenId whole = vocab.add("abc");  // no merges lead there
  const TokenId hidden = vocab.add("xyz", TokenType::kControl);
  CHECK(TinyTokenizer(vocab)->encode("abc") == Ids{'a', 'b', 'c'});
  vocab.pre = "llama-bpe";
  const TinyTokenizer tokenizer(vocab);
  CHECK(tokenizer->encode("abc") == Ids{whole});
  CHECK(tokenizer->encode("xyz") == Ids{'x', 'y', 'z'});
  CHECK(tokenizer->encode("xyz", kParse) == Ids{hidden});
}

TEST_CASE("bpe: merges that name no tokens, or make a control token, are left out", "[tokenizer]") {
  TinyVocab vocab = test::byte_level_vocab();
  const TokenId control = vocab.add("st", TokenType::kControl);
  vocab.merges = {"s t", "a zz", "a q", "a b"};
  const TokenId ab = vocab.add("ab");
  const TinyTokenizer tokenizer(vocab);
  CHECK(tokenizer->encode("st") == Ids{'s', 't'});
  CHECK(tokenizer->encode("st", kParse) == Ids{control});
  CHECK(tokenizer->encode("aq") == Ids{'a', 'q'});
  CHECK(tokenizer->encode("ab") == Ids{ab});
}

TEST_CASE("bpe: of two merges of one pair the first counts", "[tokenizer]") {
  TinyVocab vocab = test::byte_level_vocab();
  const TokenId ab = vocab.add_merge("a", "b");
  const TokenId bc = vocab.add_merge("b", "c");
  vocab.merges.push_back("a b");
  const TinyTokenizer tokenizer(vocab);
  CHECK(tokenizer->encode("abc") == Ids{ab, 'c'});
  CHECK(tokenizer->encode("bc") == Ids{bc});
}

TEST_CASE("bpe: a malformed merge is refused by its index", "[tokenizer]") {
  TinyVocab vocab = test::byte_level_vocab();
  for (const std::string bad : {"ab", "", " ", "a ", "ab\n"}) {
    vocab.merges = {"a b", bad};
    const test::Refusal refused = test::refusal(vocab);
    CHECK(refused.code == static_cast<int>(ExitCode::kModelFile));
    CHECK(refused.message.find("tokenizer.ggml.merges[1]") != std::string::npos);
    CHECK(refused.message.find('\n') == std::string::npos);
  }
}

TEST_CASE("bpe: a byte that the vocabulary lacks can merge; alone it is the unknown token, or lost",
          "[tokenizer]") {
  TinyVocab vocab;
  const TokenId a = vocab.add("a");
  const TokenId unknown = vocab.add("<unk>", TokenType::kUnknown);
  const TokenId ab = vocab.add("ab");
  vocab.merges = {"a b"};
  CHECK(TinyTokenizer(vocab)->encode("aabb") == Ids{a, ab});
  vocab.more = [&](gguf::Writer& file) {
    file.add_u32("tokenizer.ggml.unknown_token_id", static_cast<uint32_t>(unknown));
  };
  CHECK(TinyTokenizer(vocab)->encode("aabb") == Ids{a, ab, unknown});
  // An end token is no unknown token, whatever the file says.
  vocab.types[static_cast<size_t>(unknown)] = static_cast<int32_t>(TokenType::kControl);
  CHECK(TinyTokenizer(vocab)->encode("aabb") == Ids{a, ab});
}

TEST_CASE("bpe: an unknown pre-tokenizer is an error that lists the known ones and the way out",
          "[tokenizer]") {
  TinyVocab vocab = test::byte_level_vocab();
  vocab.pre = "nonesuch\n";
  const test::Refusal refused = test::refusal(vocab);
  CHECK(refused.code == static_cast<int>(ExitCode::kModelFile));
  CHECK(refused.message.find("'nonesuch") != std::string::npos);
  CHECK(refused.message.find("llama-bpe") != std::string::npos);
  CHECK(refused.message.find("qwen2") != std::string::npos);
  CHECK(refused.message.find("--pretokenizer NAME") != std::string::npos);
  CHECK(refused.message.find('\n') == std::string::npos);

  const TinyTokenizer chosen(vocab, {.pretokenizer = "qwen2"});
  CHECK(chosen->pretokenizer() == "qwen2");
  const test::Refusal wrong_choice = test::refusal(vocab, {.pretokenizer = "nonesuch either"});
  CHECK(wrong_choice.code == static_cast<int>(ExitCode::kUsage));
  CHECK(wrong_choice.message.find("nonesuch either") != std::string::npos);
}

TEST_CASE("bpe: without a named pre-tokenizer it is 'default'; a choice overrides the file's",
          "[tokenizer]") {
  TinyVocab vocab = test::byte_level_vocab();
  CHECK(TinyTokenizer(vocab)->pretokenizer() == "gpt-2");
  CHECK(TinyTokenizer(vocab, {.pretokenizer = "falcon"})->pretokenizer() == "falcon");
  vocab.pre.clear();
  CHECK(TinyTokenizer(vocab)->pretokenizer() == "default");
  CHECK(TinyTokenizer(vocab)->model() == "gpt2");
}

}  // namespace minfer
