// What every tokenizer over a model file's vocabulary does alike: special tokens in text, BOS and EOS, ids.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/tokenizer/special_split.h"
#include "core/tokenizer/tokenizer.h"
#include "core/tokenizer/vocab.h"

namespace minfer {

class VocabTokenizer : public Tokenizer {
 public:
  std::vector<TokenId> encode(std::string_view text, const EncodeOptions& options) const final;
  std::string token_bytes(TokenId id, bool with_special) const final;
  int32_t n_vocab() const final { return vocab_.size(); }
  bool is_eog(TokenId id) const final;
  std::vector<TokenId> eog_ids() const final { return vocab_.eog(); }
  TokenId bos_id() const final { return vocab_.bos(); }
  TokenId eos_id() const final { return vocab_.eos(); }
  bool adds_bos() const final { return vocab_.add_bos(); }
  bool adds_eos() const final { return vocab_.add_eos(); }
  TokenId find(std::string_view piece) const final { return vocab_.find(piece); }

 protected:
  explicit VocabTokenizer(Vocab vocab);

  const Vocab& vocab() const { return vocab_; }
  // Tokens that stand for their text as it is, and that encode takes out of the text before anything else.
  bool is_special(TokenId id) const;

 private:
  // Appends the ids of a text, not empty, that holds no special token and is the whole or stands beside
  // special tokens. `continues`: it goes on where a text ended that is not there.
  virtual void encode_text(std::string_view text, bool continues, std::vector<TokenId>& ids) const = 0;
  // The bytes of a normal token's text.
  virtual std::string normal_bytes(std::string_view text) const = 0;

  Vocab vocab_;
  SpecialSplitter user_defined_;
  SpecialSplitter all_special_;
};

std::unique_ptr<Tokenizer> make_bpe_tokenizer(const gguf::Metadata& metadata,
                                              const TokenizerOptions& options);
std::unique_ptr<Tokenizer> make_sentencepiece_tokenizer(const gguf::Metadata& metadata);

}  // namespace minfer
