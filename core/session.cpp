#include "core/session.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "core/cancel.h"
#include "core/error.h"
#include "core/stopwatch.h"

namespace minfer {
namespace {

size_t common_prefix(std::span<const TokenId> a, std::span<const TokenId> b) {
  return static_cast<size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

void write(Completion& completion, const TextSink& sink) {
  if (const std::string text = completion.take_text(); !text.empty()) sink(text);
}

}  // namespace

Session::Session(Engine& engine, const Tokenizer& tokenizer, int32_t n_tokens)
    : engine_(engine), tokenizer_(tokenizer), n_tokens_(n_tokens), sequence_(engine, n_tokens) {}

Generation Session::generate(std::span<const TokenId> prompt, const GenerateOptions& options,
                             const TextSink& sink) {
  Completion completion(engine_.hparams(), tokenizer_, prompt, options);
  if (completion.n_kv_tokens() > n_tokens_) {
    throw Error(ExitCode::kUsage,
                fmt::format("a prompt of {} tokens and its completion need room for {}, the "
                            "session has {}",
                            prompt.size(), completion.n_kv_tokens(), n_tokens_));
  }
  try {
    run(prompt, completion, sink);
  } catch (const Error& error) {
    if (error.code() != ExitCode::kInterrupted) throw;
    completion.stop(FinishReason::kInterrupted);
  }
  write(completion, sink);
  return std::move(completion.generation());
}

void Session::run(std::span<const TokenId> prompt, Completion& completion, const TextSink& sink) {
  Generation& generation = completion.generation();
  // The last row is computed again where it is held already: its result is what the completion begins with.
  const size_t n_reused = std::min(common_prefix(held_, prompt), prompt.size() - 1);
  held_.resize(n_reused);
  engine_.kv_truncate(sequence_.id(), static_cast<int32_t>(n_reused));
  generation.n_reused = static_cast<int32_t>(n_reused);

  const Stopwatch prefill_clock;
  RowResult result = append(prompt.subspan(n_reused), completion.want());
  if (completion.done()) {
    generation.prefill_seconds = prefill_clock.seconds();
    return;
  }
  throw_if_interrupted();
  std::optional<TokenId> next = completion.accept(result, engine_);
  generation.prefill_seconds = prefill_clock.seconds();
  const Stopwatch decode_clock;
  write(completion, sink);
  while (next) {
    result = append(std::span(&*next, 1), completion.want());
    throw_if_interrupted();
    next = completion.accept(result, engine_);
    generation.decode_seconds = decode_clock.seconds();
    write(completion, sink);
  }
}

// Runs ids behind what is held. The result's logits are valid until the next call.
RowResult Session::append(std::span<const TokenId> ids, Want want) {
  Batch batch;
  for (const TokenId id : ids) {
    batch.add(sequence_.id(), static_cast<int32_t>(held_.size()), id, Want::kNothing);
    held_.push_back(id);
  }
  batch.rows.back().want = want;
  try {
    return engine_.forward(batch).back();
  } catch (...) {
    held_.resize(static_cast<size_t>(engine_.kv_length(sequence_.id())));
    throw;
  }
}

}  // namespace minfer
