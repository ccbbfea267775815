// Small vocabularies as model files in memory, for the tokenizers' tests.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/tokenizer/tokenizer.h"
#include "core/tokenizer/vocab.h"
#include "gguf/reader.h"
#include "gguf/writer.h"

namespace minfer::test {

struct TinyVocab {
  std::string model = "gpt2";
  std::string pre = "gpt-2";  // empty: no key
  std::vector<std::string> tokens;
  std::vector<int32_t> types;  // filled up with "normal"
  std::vector<float> scores;   // empty: no key
  std::vector<std::string> merges;
  std::function<void(gguf::Writer&)> more;  // further keys

  // Appends a token; its id.
  TokenId add(std::string text, TokenType type = TokenType::kNormal, float score = 0.0f);
  // Appends the product of a merge of two tokens' texts, in the byte alphabet, and the merge.
  TokenId add_merge(const std::string& left, const std::string& right);
};

// "gpt2": the 256 bytes, in their alphabet, as ids 0 to 255.
TinyVocab byte_level_vocab();
// "llama": <unk>, <s>, </s>, then <0x00> to <0xFF>: ids 3 to 258.
TinyVocab sentencepiece_vocab();
// How the byte alphabet spells `bytes`.
std::string spelled(std::string_view bytes);

// A tokenizer together with the file that it looks into.
class TinyTokenizer {
 public:
  explicit TinyTokenizer(const TinyVocab& vocab, const TokenizerOptions& options = {});
  const Tokenizer* operator->() const { return tokenizer_.get(); }
  const Tokenizer& operator*() const { return *tokenizer_; }

 private:
  std::vector<std::byte> file_;
  gguf::Reader reader_;
  std::unique_ptr<Tokenizer> tokenizer_;
};

std::vector<std::byte> vocab_file(const TinyVocab& vocab);

// What making the tokenizer throws, and its exit code (0 and empty where it throws nothing).
struct Refusal {
  int code = 0;
  std::string message;
};
Refusal refusal(const TinyVocab& vocab, const TokenizerOptions& options = {});

}  // namespace minfer::test
