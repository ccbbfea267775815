// The choice of the next token from a row of logits.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/batch.h"

namespace minfer {

// Defaults change nothing: greedy, no truncation, no penalty.
struct SamplerOptions {
  double temp = 0;            // 0: the likeliest token
  int32_t top_k = 0;          // 0: all
  double top_p = 1;           // 1: all
  double min_p = 0;           // 0: all; else tokens at least this likely, as a share of the likeliest
  double repeat_penalty = 1;  // divides positive and multiplies negative logits of recent tokens
  int32_t repeat_last_n = 64; // recent tokens, prompt included, that the three penalties look at; -1: all
  double presence_penalty = 0;
  double frequency_penalty = 0;
  std::vector<std::pair<TokenId, double>> logit_bias;  // added; -inf forbids
  uint64_t seed = 0;
};

// What one token's row said before any of the options changed it: log-softmax over the vocabulary.
struct TokenLogprobs {
  TokenId id = 0;
  double logprob = 0;
  std::vector<std::pair<TokenId, double>> top;  // descending; of equals the lower id first
};

class Sampler {
 public:
  // n_vocab: ids below it may be chosen.
  Sampler(const SamplerOptions& options, int32_t n_vocab);

  // Whether the choice can differ from the engine's argmax, so that it needs the row of logits.
  static bool needs_logits(const SamplerOptions& options);

  // Takes note of a token of the prompt or of the completion, for the penalties.
  void accept(TokenId id);
  // Chooses from logits [>= n_vocab]: bias, penalties, top-k, top-p, min-p, temperature, in this order (as
  // llama.cpp orders them), then one draw. The same options, seed, logits and accepted tokens give the same
  // choices on every machine and in every locale.
  TokenId sample(std::span<const float> logits);

 private:
  SamplerOptions options_;
  int32_t n_vocab_;
  std::mt19937_64 random_;  // its sequence is the standard's
  std::vector<TokenId> recent_;
};

TokenLogprobs token_logprobs(std::span<const float> logits, TokenId id, int32_t n_top);

// The seed of request `index` of a run: well mixed, so that requests differ and each depends on nothing else.
uint64_t derive_seed(uint64_t run_seed, uint64_t index);

}  // namespace minfer
