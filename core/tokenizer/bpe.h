// Byte-level BPE ("gpt2"): pre-tokens, whose bytes merge by the rank of the file's merge list. Sennrich et
// al. 2016, Neural Machine Translation of Rare Words with Subword Units; on bytes: Radford et al. 2019.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/tokenizer/merge.h"
#include "core/tokenizer/pretokenize.h"
#include "core/tokenizer/vocab_tokenizer.h"

namespace minfer {

// (left id, right id) -> rank and id of the product. Open addressing, twice the list's length at most.
class MergeTable {
 public:
  void reserve(size_t n);  // once, before the first insert; no more than n inserts
  // Of equal pairs the first counts.
  void insert(TokenId left, TokenId right, Merge merge);
  Merge find(TokenId left, TokenId right) const;

 private:
  struct Slot {
    uint64_t key = 0;
    Merge merge;  // id -1: free
  };
  size_t slot_of(uint64_t key) const;
  std::vector<Slot> slots_;  // a power of two
};

class BpeTokenizer final : public VocabTokenizer {
 public:
  // `pretokenizer` must be known.
  BpeTokenizer(const gguf::Metadata& metadata, Vocab vocab, const PretokenizerTraits& pretokenizer);

  std::string decode(std::span<const TokenId> ids, bool with_special) const override;
  std::string model() const override { return "gpt2"; }
  std::string pretokenizer() const override { return name_; }

 private:
  void encode_text(std::string_view text, bool continues, std::vector<TokenId>& ids) const override;
  std::string normal_bytes(std::string_view text) const override;
  void read_merges(const gguf::Metadata& metadata);
  TokenId find_symbol(std::string_view text) const;
  TokenId find_whole(std::string_view piece, std::string& spelled) const;

  std::string name_;
  bool ignore_merges_;
  Pretokenizer pretokenize_;
  // A byte without a token of its own (some vocabularies lack control characters) counts as n_vocab + byte:
  // it can still merge; where it does not it becomes the unknown token, or is left out, with a warning.
  std::array<TokenId, 256> byte_ids_{};
  MergeTable merges_;
};

}  // namespace minfer
