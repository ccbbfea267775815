// How well a model predicts a text, counted as llama-perplexity does.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "core/engine.h"
#include "core/tokenizer/tokenizer.h"

namespace minfer {

struct PerplexityWindow {
  int32_t index = 0, n_windows = 0;
  int64_t n_scored = 0;   // tokens so far
  double perplexity = 0;  // of all windows so far
  double uncertainty = 0; // standard error of it
};

struct PerplexityResult {
  int32_t n_windows = 0;
  int64_t n_tokens = 0;  // of the whole text
  int64_t n_scored = 0;
  double perplexity = 0, uncertainty = 0;
  double seconds = 0;    // in forward passes
};

// The text's ids are cut into windows of n_ctx (the rest is dropped), each is run from position 0 (its first
// token replaced by BOS where the file asks for one), and the tokens of its second half are scored. Throws
// Error(kUsage) where the text is shorter than two windows (both numbers), Error(kRuntime) where a result is
// not finite.
PerplexityResult perplexity(Engine& engine, const Tokenizer& tokenizer, std::span<const TokenId> ids, int32_t n_ctx,
                            const std::function<void(const PerplexityWindow&)>& done);

}  // namespace minfer
