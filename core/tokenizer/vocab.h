// The vocabulary of a model file: token texts, types and scores, the special ids, and which tokens end a
// generation. Texts are views into the file: nothing is copied.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/batch.h"
#include "gguf/metadata.h"

namespace minfer {

inline constexpr TokenId kNoToken = -1;

enum class TokenType : uint8_t { kUndefined, kNormal, kUnknown, kControl, kUserDefined, kUnused, kByte };

// string -> id, open addressing over the texts that the caller keeps.
class StringIndex {
 public:
  // Empty texts are left out; of equal texts the last one counts.
  void build(const std::vector<std::string_view>& texts);
  TokenId find(const std::vector<std::string_view>& texts, std::string_view text) const;

 private:
  // The table of a large vocabulary is out of the cache, and so are the texts: a short text is compared in
  // the slot.
  struct Slot {
    TokenId id = kNoToken;
    uint32_t size = 0;
    uint64_t word = 0;  // up to 8 bytes: the text itself, padded with zeros; more: its hash
  };
  static Slot make_slot(std::string_view text, uint64_t hash);
  size_t slot_of(const std::vector<std::string_view>& texts, std::string_view text, uint64_t hash) const;
  std::vector<Slot> slots_;  // a power of two
};

// What a file may leave out; ids outside the vocabulary count as absent.
struct VocabDefaults {
  TokenId bos = kNoToken;
  TokenId eos = kNoToken;
  TokenId unknown = kNoToken;
  bool add_bos = false;
  bool add_eos = false;
};

class Vocab {
 public:
  // Throws Error(kModelFile) where tokenizer.ggml.tokens is absent or empty, or scores and types are not one
  // a token.
  Vocab(const gguf::Metadata& metadata, const VocabDefaults& defaults);

  int32_t size() const { return static_cast<int32_t>(texts_.size()); }
  bool contains(TokenId id) const { return id >= 0 && id < size(); }
  // These take ids inside the vocabulary only.
  std::string_view text(TokenId id) const { return texts_[static_cast<size_t>(id)]; }
  TokenType type(TokenId id) const { return types_[static_cast<size_t>(id)]; }
  float score(TokenId id) const { return scores_.empty() ? 0.0f : scores_[static_cast<size_t>(id)]; }
  // Control and unknown tokens: text spells them only where the caller lets it, and they show only when asked
  // for.
  bool is_hidden(TokenId id) const {
    return type(id) == TokenType::kControl || type(id) == TokenType::kUnknown;
  }

  TokenId find(std::string_view text) const { return index_.find(texts_, text); }
  // The token named <0xXX>, kNoToken where there is none.
  TokenId find_byte(uint8_t byte) const;
  size_t longest_text() const { return longest_text_; }

  TokenId bos() const { return bos_; }
  TokenId eos() const { return eos_; }
  // Never a control token: some files name an end token here, which must not come out of plain text.
  TokenId unknown() const { return unknown_; }
  bool add_bos() const { return add_bos_; }
  bool add_eos() const { return add_eos_; }
  const std::vector<TokenId>& eog() const { return eog_; }  // ascending

 private:
  void read_tokens(const gguf::Metadata& metadata);
  TokenId read_id(const gguf::Metadata& metadata, const std::string& key, TokenId fallback) const;
  bool read_flag(const gguf::Metadata& metadata, const std::string& key, bool fallback, TokenId id) const;
  void find_end_of_generation(const gguf::Metadata& metadata);
  TokenId find_infill_token(const gguf::Metadata& metadata, size_t role);

  std::vector<std::string_view> texts_;  // [n_vocab]
  std::vector<TokenType> types_;         // [n_vocab]
  std::vector<float> scores_;            // [n_vocab], or empty
  StringIndex index_;
  size_t longest_text_ = 0;
  TokenId bos_ = kNoToken, eos_ = kNoToken, unknown_ = kNoToken;
  bool add_bos_ = false, add_eos_ = false;
  std::vector<TokenId> eog_;
};

// The value of a token named <0xXX>, nothing for any other text.
std::optional<uint8_t> byte_token_value(std::string_view text);

}  // namespace minfer
