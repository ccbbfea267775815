#include "core/generator.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "core/cancel.h"
#include "core/error.h"
#include "core/sequence.h"
#include "core/stopwatch.h"
#include "core/utf8_stream.h"

namespace minfer {
namespace {

// How many tokens may be generated behind n_prompt, and whether it is the context that says so.
struct Budget {
  int32_t n_predict = 0;
  bool limited_by_context = false;
};

Budget budget(const HParams& hparams, int32_t n_prompt, const GenerateOptions& options) {
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

// The choice behind the last prompt token; nothing where Ctrl-C came first: between two batches it is looked
// for.
const RowResult* prefill(Engine& engine, SeqId seq, std::span<const TokenId> prompt) {
  const RowResult* last = nullptr;
  const auto chunk = static_cast<size_t>(engine.max_rows());
  for (size_t start = 0; start < prompt.size(); start += chunk) {
    if (interrupted()) return nullptr;
    Batch batch;
    const size_t end = std::min(start + chunk, prompt.size());
    for (size_t t = start; t < end; ++t) {
      batch.add(seq, static_cast<int32_t>(t), prompt[t],
                t + 1 == prompt.size() ? Want::kArgmax : Want::kNothing);
    }
    const auto results = engine.forward(batch);
    if (!results.empty()) last = &results.back();
  }
  return last;
}

}  // namespace

const char* finish_reason_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "end of generation";
    case FinishReason::kLength:
      return "token limit (-n)";
    case FinishReason::kContextFull:
      return "context full (-c)";
    case FinishReason::kInterrupted:
      return "interrupted";
  }
  return "unknown";
}

int32_t kv_tokens_needed(const HParams& hparams, int32_t n_prompt, const GenerateOptions& options) {
  return n_prompt + budget(hparams, n_prompt, options).n_predict;
}

Generation generate(Engine& engine, const Tokenizer& tokenizer, std::span<const TokenId> prompt,
                    const GenerateOptions& options, const TextSink& sink) {
  if (prompt.empty()) throw Error(ExitCode::kUsage, "the prompt is empty");
  Generation out;
  out.n_prompt = static_cast<int32_t>(prompt.size());
  const Budget allowed = budget(engine.hparams(), out.n_prompt, options);
  const Sequence seq(engine, out.n_prompt + allowed.n_predict);

  Stopwatch prefill_clock;
  const RowResult* result = prefill(engine, seq.id(), prompt);
  out.prefill_seconds = prefill_clock.seconds();
  Stopwatch decode_clock;
  Utf8Stream text;
  for (int32_t step = 0;; ++step) {
    if (interrupted() || result == nullptr) {
      out.reason = FinishReason::kInterrupted;
      return out;  // an incomplete character is dropped: what was printed ends with a whole one
    }
    if (step == allowed.n_predict) {
      out.reason = allowed.limited_by_context ? FinishReason::kContextFull : FinishReason::kLength;
      break;
    }
    check_finite(*result, engine, step);
    const TokenId id = result->argmax;
    out.ids.push_back(id);
    out.decode_seconds = decode_clock.seconds();
    if (!options.ignore_eos && tokenizer.is_eog(id)) {
      out.reason = FinishReason::kStop;
      break;
    }
    if (const std::string ready = text.push(tokenizer.token_bytes(id)); !ready.empty()) sink(ready);
    if (step + 1 < allowed.n_predict) {
      Batch batch;
      batch.add(seq.id(), out.n_prompt + step, id, Want::kArgmax);
      result = &engine.forward(batch).back();
    }
  }
  if (const std::string rest = text.finish(); !rest.empty()) sink(rest);
  return out;
}

}  // namespace minfer
