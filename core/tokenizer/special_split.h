// Finds the tokens that text spells outright: special and user-defined ones.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/byte_range.h"
#include "core/tokenizer/vocab.h"

namespace minfer {

struct SpecialMatch {
  size_t begin = 0;
  TokenId id = kNoToken;
};

class SpecialSplitter {
 public:
  // `tokens`: ids of the vocabulary; those with empty texts are left out. The vocabulary's texts must outlive
  // this.
  SpecialSplitter(const Vocab& vocab, const std::vector<TokenId>& tokens);

  // Matches that do not overlap, ascending. The longest token anywhere in the text comes first, then the next
  // in what it left, as if the text were searched for one token after another, longest first; of equally long
  // ones that overlap the leftmost counts. Hidden tokens (Vocab::is_hidden) that touch a `literal` range are
  // not looked for; the ranges are ascending, disjoint and not empty. O(n log n) in the text's length n.
  std::vector<SpecialMatch> split(std::string_view text, std::span<const ByteRange> literal = {}) const;

 private:
  struct Entry {
    std::string_view text;
    TokenId id;
    bool hidden;
  };
  // The longest token of at most `limit` bytes, or of `hidden_limit` if it is hidden, that `text` begins
  // with; null for none.
  const Entry* longest(std::string_view text, size_t limit, size_t hidden_limit) const;

  std::vector<Entry> entries_;                                 // sorted by text, no two equal
  std::array<std::pair<uint32_t, uint32_t>, 256> by_first_{};  // first byte -> its range of entries_
};

}  // namespace minfer
