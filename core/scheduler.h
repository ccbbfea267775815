// Continuous batching: many requests through one engine, as many at once as fit.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/completion.h"

namespace minfer {

struct Request {
  std::vector<TokenId> prompt;
  GenerateOptions options;
};

struct ScheduleOptions {
  int32_t n_parallel = 1;      // sequences at once at most
  int32_t n_batch_rows = 512;  // rows of a step at most: one for every decoding sequence, the rest prompts
};

struct RequestResult {
  std::string text;
  Generation generation;             // prefill_seconds: from admission to the first choice
  std::optional<std::string> error;  // then text is empty: why this request, and it alone, failed
  double queue_seconds = 0;          // from the start of the run to its admission
};

// What the run did so far.
struct ScheduleStats {
  int64_t n_steps = 0;
  int32_t n_parallel_peak = 0;
  int64_t n_prompt_tokens = 0;  // computed, or reused
  int64_t n_reused_tokens = 0;  // of those: taken from another sequence
  int64_t n_generated_tokens = 0;
  int64_t n_near_ties = 0;
  double seconds = 0;
};

// Runs every request and hands each result to `done` when it is there, in the order of completion. A step
// holds one row for every decoding sequence and chunks of prompts beside them; requests are admitted in order
// as others finish and KV room (prompt + what may come) allows; a prefix that a request shares with one under
// way is computed once and copied. The schedule depends on the requests, the options and the
// engine's KV room, never on time: runs are reproducible. `progress`, where given, is called after every step
// with the stats so far. A request that fails (too long, no room even alone, not finite) is a result with an
// error. Throws Error(kInterrupted) on Ctrl-C; whatever `done` throws passes through; every sequence is
// freed.
ScheduleStats run_requests(Engine& engine, const Tokenizer& tokenizer, std::span<const Request> requests,
                           const ScheduleOptions& options,
                           const std::function<void(size_t index, RequestResult)>& done,
                           const std::function<void(const ScheduleStats&)>& progress = nullptr);

}  // namespace minfer
