#include "tests/support/tiny_vocab.h"

#include <utility>

#include "core/error.h"
#include "core/tokenizer/byte_alphabet.h"

namespace minfer::test {

TokenId TinyVocab::add(std::string text, TokenType type, float score) {
  types.resize(tokens.size(), static_cast<int32_t>(TokenType::kNormal));
  tokens.push_back(std::move(text));
  types.push_back(static_cast<int32_t>(type));
  scores.push_back(score);
  return static_cast<TokenId>(tokens.size() - 1);
}

TokenId TinyVocab::add_merge(const std::string& left, const std::string& right) {
  merges.push_back(left + " " + right);
  return add(left + right);
}

std::string spelled(std::string_view bytes) {
  std::string out;
  for (const char byte : bytes) append_spelled(static_cast<uint8_t>(byte), out);
  return out;
}

TinyVocab byte_level_vocab() {
  TinyVocab vocab;
  for (int byte = 0; byte < 256; ++byte) vocab.add(spelled(std::string(1, static_cast<char>(byte))));
  return vocab;
}

TinyVocab sentencepiece_vocab() {
  TinyVocab vocab;
  vocab.model = "llama";
  vocab.pre.clear();
  vocab.add("<unk>", TokenType::kUnknown);
  vocab.add("<s>", TokenType::kControl);
  vocab.add("</s>", TokenType::kControl);
  constexpr char kHex[] = "0123456789ABCDEF";
  for (int byte = 0; byte < 256; ++byte) {
    vocab.add(std::string("<0x") + kHex[byte / 16] + kHex[byte % 16] + ">", TokenType::kByte);
  }
  return vocab;
}

std::vector<std::byte> vocab_file(const TinyVocab& vocab) {
  gguf::Writer file;
  file.add_string("general.architecture", "llama");
  file.add_string("tokenizer.ggml.model", vocab.model);
  if (!vocab.pre.empty()) file.add_string("tokenizer.ggml.pre", vocab.pre);
  file.add_strings("tokenizer.ggml.tokens", vocab.tokens);
  file.add_i32s("tokenizer.ggml.token_type", vocab.types);
  if (!vocab.scores.empty()) file.add_f32s("tokenizer.ggml.scores", vocab.scores);
  if (vocab.model == "gpt2") file.add_strings("tokenizer.ggml.merges", vocab.merges);
  if (vocab.more) vocab.more(file);
  return file.finish();
}

TinyTokenizer::TinyTokenizer(const TinyVocab& vocab, const TokenizerOptions& options)
    : file_(vocab_file(vocab)),
      reader_(gguf::Reader::from_bytes(file_)),
      tokenizer_(Tokenizer::from_metadata(reader_.metadata(), options)) {}

Refusal refusal(const TinyVocab& vocab, const TokenizerOptions& options) {
  try {
    const TinyTokenizer tokenizer(vocab, options);
  } catch (const Error& error) {
    return {static_cast<int>(error.code()), error.what()};
  }
  return {};
}

}  // namespace minfer::test
