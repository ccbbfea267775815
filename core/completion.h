// One request's way from choices to text, whatever engine and schedule compute the rows: sampling, stopping,
// whole characters.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/engine.h"
#include "core/sampler.h"
#include "core/stop_strings.h"
#include "core/tokenizer/tokenizer.h"
#include "core/utf8_stream.h"

namespace minfer {

struct GenerateOptions {
  int32_t n_predict = 512;          // at most so many tokens; -1: until the context is full
  int32_t n_ctx = 0;                // prompt and completion together; 0: what the model was trained with
  bool ignore_eos = false;          // go on past end-of-generation tokens (they are not printed)
  std::vector<std::string> stop{};  // the completion ends before the first of these
  SamplerOptions sampling{};
  std::optional<int32_t> n_logprobs{};  // keep the logprob of every token, and of so many likeliest ones
};

enum class FinishReason { kStop, kStopString, kLength, kContextFull, kInterrupted };
const char* finish_reason_name(FinishReason reason);  // for people: "end of generation"
const char* finish_reason_code(FinishReason reason);  // for records: "stop", "length", "interrupted"

// A choice whose margin to the second is below this is a near-tie: engines that round differently with the
// number of rows may choose the other one.
inline constexpr float kNearTieMargin = 0.05f;

struct Generation {
  std::vector<TokenId> ids;             // generated ones; an end-of-generation token that stopped it included
  std::vector<TokenLogprobs> logprobs;  // one an id, where asked for
  FinishReason reason = FinishReason::kLength;
  int32_t n_prompt = 0;
  int32_t n_reused = 0;        // of the prompt: tokens whose KV was there already
  int32_t n_near_ties = 0;     // greedy choices with a margin below kNearTieMargin
  double prefill_seconds = 0;  // up to and including the choice of the first token
  double decode_seconds = 0;   // the ids.size() - 1 tokens after it
};

// KV slots that a generation takes: its prompt and what may come behind it. Throws Error(kUsage) where the
// prompt is empty or does not fit the context (both numbers).
int32_t kv_tokens_needed(const HParams& hparams, int32_t n_prompt, const GenerateOptions& options);

class Completion {
 public:
  // Throws as kv_tokens_needed(), and Error(kUsage) for a logit bias or stop string that cannot be.
  // Engine's hparams and tokenizer must outlive it.
  Completion(const HParams& hparams, const Tokenizer& tokenizer, std::span<const TokenId> prompt,
             const GenerateOptions& options);

  int32_t n_kv_tokens() const { return generation_.n_prompt + n_allowed_; }  // room that its sequence needs
  Want want() const;  // what the last row of the prompt and every later one has to ask for
  // -n 0: no token is wanted, the prompt alone is computed.
  bool done() const { return done_; }

  // The result of the last row. Returns the token to compute next, nothing once it is done. Throws
  // Error(kRuntime) where the row is not finite.
  std::optional<TokenId> accept(const RowResult& result, const Engine& engine);
  // The text that became ready since the last call: whole characters, and no beginning of a stop string; all
  // that is left once done().
  std::string take_text();
  // Ends it from outside (interrupted): an incomplete character is dropped.
  void stop(FinishReason reason);

  Generation& generation() { return generation_; }
  const Generation& generation() const { return generation_; }

 private:
  TokenId choose(const RowResult& result);
  void finish(FinishReason reason);

  const Tokenizer& tokenizer_;
  GenerateOptions options_;
  int32_t n_vocab_;
  int32_t n_allowed_ = 0;
  bool limited_by_context_ = false;
  bool done_ = false;
  Sampler sampler_;
  StopStrings stops_;
  Utf8Stream characters_;
  std::string ready_;
  Generation generation_;
};

}  // namespace minfer
