// Cuts text into pre-tokens, which byte-level BPE merges never cross: one or more expressions in turn, each
// of which cuts the pieces that the one before left. What an expression does not match is a piece of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace minfer {

// A name of tokenizer.ggml.pre and what llama.cpp ties to it.
struct PretokenizerTraits {
  std::string_view name;
  bool ignore_merges =
      false;             // a pre-token that is in the vocabulary is taken whole, whatever the merges say
  bool add_bos = false;  // where the file does not say
};

// Null for a name that is not known.
const PretokenizerTraits* find_pretokenizer(std::string_view name);
// Every known name, in alphabetical order, separated by commas.
std::string known_pretokenizers();

class Pretokenizer {
 public:
  // `name` must be known. Throws Error(kRuntime) where the expression library refuses.
  explicit Pretokenizer(std::string_view name);
  ~Pretokenizer();

  // Where each pre-token ends, ascending, the last one at text.size(); no piece is empty. Any bytes: runs of
  // valid UTF-8 are cut as if they stood alone, a run of bytes that are no UTF-8 is one piece. Time is linear
  // in the text.
  std::vector<uint32_t> split(std::string_view text) const;

 private:
  class Expression;
  std::vector<std::unique_ptr<Expression>> expressions_;
};

}  // namespace minfer
