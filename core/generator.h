// Prompt ids in, completion out: prefill, then greedy decoding until something stops it.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "core/engine.h"
#include "core/tokenizer/tokenizer.h"

namespace minfer {

struct GenerateOptions {
  int32_t n_predict = 512;  // at most so many tokens; -1: until the context is full
  int32_t n_ctx = 0;        // prompt and completion together; 0: what the model was trained with
  bool ignore_eos = false;  // go on past end-of-generation tokens (they are not printed)
};

enum class FinishReason { kStop, kLength, kContextFull, kInterrupted };
const char* finish_reason_name(FinishReason reason);

struct Generation {
  std::vector<TokenId> ids;  // generated ones; an end-of-generation token that stopped it included
  FinishReason reason = FinishReason::kLength;
  int32_t n_prompt = 0;
  double prefill_seconds = 0;  // up to and including the choice of the first token
  double decode_seconds = 0;   // the ids.size() - 1 tokens after it
};

// KV slots that a generation takes: its prompt and what may come behind it. Throws Error(kUsage) where the
// prompt does not fit the context (both numbers).
int32_t kv_tokens_needed(const HParams& hparams, int32_t n_prompt, const GenerateOptions& options);

// Receives the completion piece by piece: whole UTF-8 characters, and at the very end whatever bytes are
// left.
using TextSink = std::function<void(std::string_view)>;

// Throws Error(kUsage) where the prompt is empty or does not fit the context (both numbers), Error(kDevice)
// where the KV cache does not fit, Error(kRuntime) where logits are not finite; whatever the sink throws
// passes through. The sequence is freed in every case.
Generation generate(Engine& engine, const Tokenizer& tokenizer, std::span<const TokenId> prompt,
                    const GenerateOptions& options, const TextSink& sink);

}  // namespace minfer
