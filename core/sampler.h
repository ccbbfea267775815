// The choice of the next token from a row of logits.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/batch.h"

namespace minfer {

// Defaults change nothing: greedy, no truncation, no penalty.
struct SamplerOptions {
  double temp = 0;             // 0: the likeliest token
  int32_t top_k = 0;           // 0: all
  double top_p = 1;            // 1: all
  double min_p = 0;            // 0: all; else tokens at least this likely, as a share of the likeliest
  double repeat_penalty = 1;   // divides positive and multiplies negative logits of recent tokens
  int32_t repeat_last_n = 64;  // recent tokens, prompt included, that the three penalties look at; -1: all
  double presence_penalty = 0;
  double frequency_penalty = 0;
  std::vector<std::pair<TokenId, double>> logit_bias{};  // added; -inf forbids
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
  // n_vocab: ids below it may be chosen. Throws Error(kUsage) for a bias of an id that is not below it, or of
  // +inf or NaN.
  Sampler(const SamplerOptions& options, int32_t n_vocab);

  // Whether the choice can differ from the engine's argmax, so that it needs the row of logits.
  static bool needs_logits(const SamplerOptions& options);

  // Takes note of a token of the prompt or of the completion, for the penalties.
  void accept(TokenId id);
  // Chooses from logits [>= n_vocab], all finite: bias, penalties, top-k, top-p, min-p, temperature, in this
  // order (as llama.cpp orders them: what is cut off is decided before the temperature flattens or sharpens
  // the distribution), then one draw. At temperature 0 the likeliest after bias and penalties, of equals the
  // lowest id. The same options, seed, logits and accepted tokens give the same choices, in every locale too.
  // Throws Error(kRuntime) where the biases leave nothing to choose.
  TokenId sample(std::span<const float> logits);

 private:
  void penalize();
  TokenId draw(double max_score);

  SamplerOptions options_;
  int32_t n_vocab_;
  std::mt19937_64 random_;                         // its sequence is the standard's
  std::vector<TokenId> accepted_;                  // where there are penalties
  std::unordered_map<TokenId, int32_t> n_recent_;  // how often each stands in the last repeat_last_n of them
  std::vector<double> scores_;                     // [n_vocab], scratch: logits, then weights
};

// logits: those of the vocabulary alone. Sums in f64.
TokenLogprobs token_logprobs(std::span<const float> logits, TokenId id, int32_t n_top);

// The seed of request `index` of a run: well mixed, so that requests differ and each depends on nothing else.
uint64_t derive_seed(uint64_t run_seed, uint64_t index);

}  // namespace minfer
