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
  int64_t n_scored = 0;    // tokens so far
  double perplexity = 0;   // of all windows so far
  double uncertainty = 0;  // standard error of it
};

struct PerplexityResult {
  int32_t n_windows = 0;
  int64_t n_tokens = 0;  // of the whole text
  int64_t n_scored = 0;
  int64_t n_run = 0;  // tokens that went through the model
  double perplexity = 0, uncertainty = 0;
  double seconds = 0;  // in forward passes
};

// A shorter window has nothing in its second half that could be predicted.
inline constexpr int32_t kMinPerplexityWindow = 3;

// Throws Error(kUsage) where n_ctx is below kMinPerplexityWindow, or n_tokens are fewer than two windows.
void check_perplexity_length(size_t n_tokens, int32_t n_ctx);

// The text's ids are cut into windows of n_ctx (the rest is dropped), each is run from position 0 (its first
// token replaced by BOS where the file asks for one), and the tokens of its second half are scored: positions
// n_ctx / 2 to n_ctx - 2 predict the next one. The softmax is over the tokenizer's vocabulary; rows that a
// padded head has beyond it stand for no token and take no part. n_threads: that score rows; 0: one a
// processor. Throws what check_perplexity_length throws, Error(kRuntime) where a result is not finite,
// Error(kInterrupted) on Ctrl-C.
PerplexityResult perplexity(Engine& engine, const Tokenizer& tokenizer, std::span<const TokenId> ids,
                            int32_t n_ctx, const std::function<void(const PerplexityWindow&)>& done,
                            int32_t n_threads = 0);

}  // namespace minfer
