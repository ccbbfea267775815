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

// The choice behind the last prompt token.
const RowResult& prefill(Engine& engine, SeqId seq, std::span<const TokenId> prompt) {
  Batch batch;
  for (size_t t = 0; t < prompt.size(); ++t) {
    batch.add(seq, static_cast<int32_t>(t), prompt[t],
              t + 1 == prompt.size() ? Want::kArgmax : Want::kNothing);
  }
  return engine.forward(batch).back();
}

class Run {
 public:
  Run(Engine& engine, const Tokenizer& tokenizer, const GenerateOptions& options, const TextSink& sink)
      : engine_(engine), tokenizer_(tokenizer), options_(options), sink_(sink) {}

  void go(std::span<const TokenId> prompt, const Budget& allowed, Generation& out) {
    const Sequence seq(engine_, out.n_prompt + allowed.n_predict);
    const Stopwatch prefill_clock;
    const RowResult* result = &prefill(engine_, seq.id(), prompt);
    out.prefill_seconds = prefill_clock.seconds();
    const Stopwatch decode_clock;
    for (int32_t step = 0; step < allowed.n_predict; ++step) {
      throw_if_interrupted();
      check_finite(*result, engine_, step);
      const TokenId id = result->argmax;
      out.ids.push_back(id);
      out.decode_seconds = decode_clock.seconds();
      if (!options_.ignore_eos && tokenizer_.is_eog(id)) {
        out.reason = FinishReason::kStop;
        return;
      }
      write(text_.push(tokenizer_.token_bytes(id)));
      if (step + 1 < allowed.n_predict) {
        Batch batch;
        batch.add(seq.id(), out.n_prompt + step, id, Want::kArgmax);
        result = &engine_.forward(batch).back();
      }
    }
    out.reason = allowed.limited_by_context ? FinishReason::kContextFull : FinishReason::kLength;
  }

  void finish() { write(text_.finish()); }

 private:
  void write(const std::string& text) const {
    if (!text.empty()) sink_(text);
  }

  Engine& engine_;
  const Tokenizer& tokenizer_;
  const GenerateOptions& options_;
  const TextSink& sink_;
  Utf8Stream text_;
};

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
  Run run(engine, tokenizer, options, sink);
  try {
    run.go(prompt, budget(engine.hparams(), out.n_prompt, options), out);
  } catch (const Error& error) {
    if (error.code() != ExitCode::kInterrupted) throw;
    out.reason = FinishReason::kInterrupted;
    return out;  // an incomplete character is dropped: what was printed ends with a whole one
  }
  run.finish();
  return out;
}

}  // namespace minfer
