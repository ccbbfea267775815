#include "core/tokenizer/tokenizer.h"

#include <random>
#include <thread>

#include "core/utf8.h"
#include "tests/support/catch.h"
#include "tests/support/oracle.h"
#include "tests/support/tiny_vocab.h"

namespace minfer {
namespace {

// Random bytes, random characters, and bits of markup, so that every path of the tokenizers is taken.
std::string random_text(std::mt19937& random) {
  std::string text;
  for (size_t n = random() % 60; n > 0; --n) {
    switch (random() % 6) {
      case 0:
        text += static_cast<char>(random() % 256);
        break;
      case 1: {
        uint32_t code = random() % 0x110000;
        // U+2581 is how SentencePiece spells a space: the one character that it cannot give back.
        if ((code >= 0xd800 && code <= 0xdfff) || code == 0x2581) code = 0x41;
        text += utf8_encode(code).view();
        break;
      }
      case 2:
        text += std::vector<std::string>{"<s>", "</s>", "<|im_end|>", "[x]", "<0x41>", "<"}[random() % 6];
        break;
      default:
        text += "the abc \n\t 's12"[random() % 15];
    }
  }
  return text;
}

void check_round_trips(const Tokenizer& tokenizer) {
  std::mt19937 random(23);
  for (int round = 0; round < 3000; ++round) {
    const std::string text = random_text(random);
    for (const bool parse_special : {false, true}) {
      const auto ids = tokenizer.encode(text, {.add_special = false, .parse_special = parse_special});
      REQUIRE(tokenizer.decode(ids, true) == text);
      for (const TokenId id : ids) REQUIRE((id >= 0 && id < tokenizer.n_vocab()));
    }
  }
}

test::TinyVocab bpe_vocab(const char* pre) {
  test::TinyVocab vocab = test::byte_level_vocab();
  vocab.pre = pre;
  vocab.add_merge("t", "h");
  vocab.add_merge("th", "e");
  vocab.add_merge(test::spelled(" "), "the");
  vocab.add_merge(test::spelled("\xff"), test::spelled("\xc3"));
  vocab.add("[x]", TokenType::kUserDefined);
  vocab.add("<|im_end|>", TokenType::kControl);
  return vocab;
}

}  // namespace

TEST_CASE("tokenizer: any bytes survive encoding and decoding", "[tokenizer]") {
  for (const char* pre : {"gpt-2", "qwen2", "llama-bpe", "default", "deepseek-llm", "tekken"}) {
    check_round_trips(*test::TinyTokenizer(bpe_vocab(pre)));
  }
  test::TinyVocab spm = test::sentencepiece_vocab();
  for (const char* text : {"t", "h", "e", "th", "the", "\xe2\x96\x81", "\xe2\x96\x81the"}) {
    spm.add(text, TokenType::kNormal, -1.0f);
  }
  spm.add("[x]", TokenType::kUserDefined);
  check_round_trips(*test::TinyTokenizer(spm));
  spm.more = [](gguf::Writer& file) { file.add_bool("tokenizer.ggml.add_space_prefix", false); };
  check_round_trips(*test::TinyTokenizer(spm));
}

TEST_CASE("tokenizer: any bytes survive the oracle's vocabularies", "[oracle][tokenizer]") {
  const auto files = test::oracle_files("tokenizer", ".gguf");
  if (files.empty()) MINFER_SKIP("no tokenizer oracle");
  for (const auto& path : files) {
    const gguf::Reader file = gguf::Reader::open(path);
    check_round_trips(*Tokenizer::from_metadata(file.metadata()));
  }
}

TEST_CASE("tokenizer: one tokenizer serves several threads", "[tokenizer]") {
  const test::TinyTokenizer tokenizer(bpe_vocab("qwen2"));
  std::vector<std::string> wrong(4);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(static_cast<uint32_t>(t));
      for (int round = 0; round < 300; ++round) {
        const std::string text = random_text(random);
        if (tokenizer->decode(tokenizer->encode(text), true) != text) wrong[t] = text;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& text : wrong) CHECK(text.empty());
}

}  // namespace minfer
