// SentencePiece BPE ("llama"): characters merge into tokens, the best score first; what is no token becomes
// bytes. Kudo and Richardson 2018, SentencePiece: A simple and language independent subword tokenizer.
#pragma once

#include <array>
#include <bitset>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/tokenizer/merge.h"
#include "core/tokenizer/vocab_tokenizer.h"

namespace minfer {

// Spaces are spelled U+2581 inside. A U+2581 of the text itself therefore comes back as a space, as
// everywhere.
class SentencePieceTokenizer final : public VocabTokenizer {
 public:
  static constexpr size_t kPairBits = size_t{1} << 18;

  SentencePieceTokenizer(const gguf::Metadata& metadata, Vocab vocab);

  std::string decode(std::span<const TokenId> ids, bool with_special) const override;
  std::string model() const override { return "llama"; }
  std::string pretokenizer() const override { return {}; }

 private:
  void encode_text(std::string_view text, bool continues, std::vector<TokenId>& ids) const override;
  std::string normal_bytes(std::string_view text) const override;
  TokenId find_piece(std::string_view text) const;
  // The ids of text[begin, end), where no merge crosses either end; how many bytes have none.
  size_t encode_stretch(std::string_view text, size_t begin, size_t end, Merger& merger,
                        std::vector<TokenId>& ids) const;

  bool add_space_prefix_;  // before every stretch of text: at the start and after a special token
  std::array<TokenId, 256> byte_ids_{};
  // Pairs of characters that stand beside each other in some token, by hash; no merge crosses any other pair,
  // so that text may be cut there. Two pairs that share a bit only make a cut go missing.
  std::bitset<kPairBits> pairs_;
};

}  // namespace minfer
