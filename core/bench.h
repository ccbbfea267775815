// How fast an engine is, measured as a user would meet it: token ids in host memory to choices in host
// memory.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/engine.h"
#include "core/model_cost.h"

namespace minfer {

struct BenchOptions {
  std::vector<int32_t> prefill;   // prompt lengths, each > 0
  std::vector<int32_t> decode;    // numbers of tokens decoded one by one, each > 0
  std::vector<int32_t> batch{1};  // numbers of sequences that decode side by side, each > 0
  int32_t depth = 0;              // tokens that each sequence's KV cache holds before the clock starts
  int32_t n_repetitions = 5;      // after one that warms up and is not counted
  uint64_t seed = 1;              // of the token ids
};

// What is inside the clock, in one line each.
extern const char* const kPrefillClock;
extern const char* const kDecodeClock;

// Seconds of several runs of the same work.
struct Times {
  double median = 0, min = 0, max = 0;
  static Times of(std::vector<double> seconds);  // not empty
};

enum class BenchKind { kPrefill, kDecode };
const char* bench_kind_name(BenchKind kind);

struct Measurement {
  BenchKind kind = BenchKind::kPrefill;
  int32_t n_tokens = 0;     // of each sequence
  int32_t n_sequences = 1;  // side by side
  int32_t depth = 0;
  int32_t n_repetitions = 0;
  Times seconds{};  // of all tokens of all sequences
  Cost cost{};      // of all tokens of all sequences
  uint64_t choices =
      0;  // a digest of the tokens that the last repetition chose: equal results, equal digests

  double tokens_per_second() const { return 1.0 * n_tokens * n_sequences / seconds.median; }
};

// KV slots that the largest measurement needs, all its sequences together. Throws Error(kUsage) past int32_t.
int32_t bench_kv_tokens(const BenchOptions& options);
// Tokens of the longest sequence of all measurements.
int64_t bench_context(const BenchOptions& options);

// `count` ids in [0, n_vocab), the same for the same seed everywhere.
std::vector<TokenId> random_tokens(size_t count, int32_t n_vocab, uint64_t seed);

// Runs every measurement, prefill before decode, and hands each to `done` when it is there. n_vocab: ids are
// drawn below it. Sequences that decode side by side have the KV of the tokens before in common (each its own
// copy), and part at the last one. Throws Error(kInterrupted) on Ctrl-C, Error(kRuntime) where logits are not
// finite, whatever the engine throws.
void bench(Engine& engine, const ModelCost& cost, int32_t n_vocab, const BenchOptions& options,
           const std::function<void(const Measurement&)>& done);

}  // namespace minfer
