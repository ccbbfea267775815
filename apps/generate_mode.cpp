#include <spdlog/spdlog.h>

#include "apps/device.h"
#include "apps/input.h"
#include "apps/modes.h"
#include "apps/output.h"
#include "core/generator.h"
#include "core/process.h"

namespace minfer {
namespace {

std::string rate(int64_t n, double seconds) {
  return n > 0 && seconds > 0 ? fmt::format("{:8.2f} tokens/s", static_cast<double>(n) / seconds)
                              : "     n/a";
}

void report(const Generation& run, double load_seconds) {
  const auto n_generated = static_cast<int64_t>(run.ids.size());
  const int64_t n_decoded = n_generated > 0 ? n_generated - 1 : 0;  // the first one comes out of the prefill
  spdlog::info("stopped: {}", finish_reason_name(run.reason));
  spdlog::info("load    {:26.3f} s", load_seconds);
  spdlog::info("prefill {:8} tokens {:10.3f} s {}", run.n_prompt, run.prefill_seconds,
               rate(run.n_prompt, run.prefill_seconds));
  spdlog::info("decode  {:8} tokens {:10.3f} s {}", n_decoded, run.decode_seconds,
               rate(n_decoded, run.decode_seconds));
  spdlog::info("first token {:22.3f} s after the start, peak memory {:.1f} MB",
               load_seconds + run.prefill_seconds, static_cast<double>(peak_memory_bytes()) / 1e6);
}

}  // namespace

ExitCode run_generate(const Options& options) {
  const Device device = choose_device(options);
  const std::string prompt = read_prompt(options);
  const double prompt_seconds =
      options.prompt == "-" ? seconds_since_start() : 0;  // waiting for a pipe is no loading
  const gguf::Reader file = gguf::Reader::open(options.model);
  const auto tokenizer = Tokenizer::from_metadata(file.metadata(), {.pretokenizer = options.pretokenizer});
  file.prefetch();
  const auto ids = tokenizer->encode(prompt, {.parse_special = options.parse_special});
  const HParams hparams = HParams::read(file);
  if (options.generation.n_ctx > hparams.n_ctx_train) {
    spdlog::warn("-c {}: the model was trained with a context of {}", options.generation.n_ctx, hparams.n_ctx_train);
  }
  const GenerateOptions generation{
      .n_predict = options.generation.n_predict, .n_ctx = options.generation.n_ctx, .ignore_eos = options.generation.ignore_eos};
  const int32_t n_kv = kv_tokens_needed(hparams, static_cast<int32_t>(ids.size()), generation);
  const auto engine = make_engine(device, options, file, *tokenizer, n_kv);
  const double load_seconds = seconds_since_start() - prompt_seconds;

  const Generation run = generate(*engine, *tokenizer, ids, generation, write_stdout);
  report(run, load_seconds);
  return run.reason == FinishReason::kInterrupted ? ExitCode::kInterrupted : ExitCode::kOk;
}

}  // namespace minfer
