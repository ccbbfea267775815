#include "core/completion.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace minfer {
namespace {

// How many tokens may be generated behind a prompt, and whether it is the context that says so.
struct Budget {
  int32_t n_allowed = 0;
  bool limited_by_context = false;
};

Budget budget(const HParams& hparams, int32_t n_prompt, const GenerateOptions& options) {
  if (n_prompt == 0) throw Error(ExitCode::kUsage, "the prompt is empty");
  const int32_t n_ctx = options.n_ctx > 0 ? options.n_ctx : hparams.n_ctx_train;
  const int32_t n_least = options.n_predict == 0 ? 0 : 1;
  if (n_prompt > n_ctx - n_least) {
    throw Error(ExitCode::kUsage,
                fmt::format("the prompt has {} tokens, which leaves no room in the context of {} (-c)",
                            n_prompt, n_ctx));
  }
  const int32_t room = n_ctx - n_prompt;
  if (options.n_predict < 0 || options.n_predict > room) return {room, true};
  return {options.n_predict, false};
}

}  // namespace

const char* finish_reason_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "end of generation";
    case FinishReason::kStopString:
      return "stop string (--stop)";
    case FinishReason::kLength:
      return "token limit (-n)";
    case FinishReason::kContextFull:
      return "context full (-c)";
    case FinishReason::kInterrupted:
      return "interrupted";
  }
  return "unknown";
}

const char* finish_reason_code(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
    case FinishReason::kStopString:
      return "stop";
    case FinishReason::kLength:
    case FinishReason::kContextFull:
      return "length";
    case FinishReason::kInterrupted:
      return "interrupted";
  }
  return "unknown";
}

int32_t kv_tokens_needed(const HParams& hparams, int32_t n_prompt, const GenerateOptions& options) {
  return n_prompt + budget(hparams, n_prompt, options).n_allowed;
}

Completion::Completion(const HParams& hparams, const Tokenizer& tokenizer, std::span<const TokenId> prompt,
                       const GenerateOptions& options)
    : tokenizer_(tokenizer),
      options_(options),
      n_vocab_(std::min(hparams.n_vocab, tokenizer.n_vocab())),
      sampler_(options.sampling, n_vocab_),
      stops_(options.stop) {
  generation_.n_prompt = static_cast<int32_t>(prompt.size());
  const Budget allowed = budget(hparams, generation_.n_prompt, options);
  n_allowed_ = allowed.n_allowed;
  limited_by_context_ = allowed.limited_by_context;
  done_ = n_allowed_ == 0;
  for (const TokenId id : prompt) sampler_.accept(id);
}

Want Completion::want() const {
  const bool needs_logits = Sampler::needs_logits(options_.sampling) || options_.n_logprobs;
  return needs_logits && !done_ ? Want::kLogits : Want::kArgmax;
}

TokenId Completion::choose(const RowResult& result) {
  if (Sampler::needs_logits(options_.sampling)) return sampler_.sample(result.logits);
  generation_.n_near_ties += result.margin < kNearTieMargin;
  return result.argmax;
}

std::optional<TokenId> Completion::accept(const RowResult& result, const Engine& engine) {
  check_finite(result, engine, static_cast<int64_t>(generation_.ids.size()));
  const TokenId id = choose(result);
  sampler_.accept(id);
  generation_.ids.push_back(id);
  if (options_.n_logprobs) {
    const auto logits = result.logits.first(static_cast<size_t>(n_vocab_));
    generation_.logprobs.push_back(token_logprobs(logits, id, *options_.n_logprobs));
  }
  if (!options_.ignore_eos && tokenizer_.is_eog(id)) {
    finish(FinishReason::kStop);
    return std::nullopt;
  }
  ready_ += characters_.push(stops_.push(tokenizer_.token_bytes(id)));
  if (stops_.matched() || static_cast<int32_t>(generation_.ids.size()) == n_allowed_) {
    finish(limited_by_context_ ? FinishReason::kContextFull : FinishReason::kLength);
    return std::nullopt;
  }
  return id;
}

void Completion::finish(FinishReason reason) {
  ready_ += characters_.push(stops_.finish());
  if (reason != FinishReason::kInterrupted) ready_ += characters_.finish();
  generation_.reason = stops_.matched() ? FinishReason::kStopString : reason;
  done_ = true;
}

std::string Completion::take_text() {
  return std::exchange(ready_, {});
}

void Completion::stop(FinishReason reason) {
  if (!done_) finish(reason);
}

}  // namespace minfer
