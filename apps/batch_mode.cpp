#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <string_view>

#include "apps/batch_output.h"
#include "apps/batch_progress.h"
#include "apps/batch_run.h"
#include "apps/device.h"
#include "apps/generation_options.h"
#include "apps/input.h"
#include "apps/modes.h"
#include "apps/prompt.h"
#include "core/process.h"

namespace minfer {
namespace {

// --parallel auto. On a card a step of so many sequences takes little longer than one of a single one; on the
// CPU there is less to gain from each further one.
constexpr int32_t kParallelCuda = 64;
constexpr int32_t kParallelCpu = 16;

void warn_ignored(const std::set<std::string>& fields) {
  constexpr size_t kNamed = 12;
  std::string names;
  size_t n = 0;
  for (const std::string& field : fields) {
    if (n++ < kNamed) names += (names.empty() ? "" : ", ") + gguf::quoted(field);
  }
  if (n > kNamed) names += fmt::format(" and {} more", n - kNamed);
  if (n > 0) spdlog::warn("--batch: unknown fields are ignored: {}", names);
}

bool draws_without_seed(const BatchRequest& request) {
  return request.options.sampling.temp > 0 && !request.has_seed;
}

// Each request that draws and has no seed gets its own, by its place in the file: what runs beside it does
// not change it, and --resume does not either.
void settle_seeds(const Options& options, const GenerateOptions& defaults,
                  std::vector<BatchRequest>& requests) {
  if (std::ranges::none_of(requests, draws_without_seed)) return;
  const uint64_t run_seed = defaults.sampling.temp > 0 ? defaults.sampling.seed : seed_in_use(options);
  for (size_t i = 0; i < requests.size(); ++i) {
    if (draws_without_seed(requests[i])) requests[i].options.sampling.seed = derive_seed(run_seed, i);
  }
}

BatchFile read_batch(const Options& options, std::string_view input, const GenerateOptions& defaults,
                     const HParams& hparams) {
  const BatchFlags& flags = options.batch;
  BatchFile batch = parse_batch(split_batch(input, flags.format, flags.delimiter), flags.format, defaults);
  warn_ignored(batch.ignored_fields);
  if (batch.requests.empty()) spdlog::warn("--batch {}: holds no requests", flags.input);
  settle_seeds(options, defaults, batch.requests);
  for (BatchRequest& request : batch.requests) {
    if (!request.messages.is_null() && options.generation.n_ctx == 0)
      request.options.n_ctx = chat_context(hparams);
  }
  return batch;
}

Finished read_earlier(const Options& options, BatchOutput& output, const BatchFile& batch) {
  const Finished before = read_finished(output.found(), batch.requests, output.name());
  const size_t n_cut = output.found().size() - before.n_bytes;
  if (n_cut > 0) spdlog::info("--resume: {} bytes of half a record are dropped", n_cut);
  if (before.n_records > 0) spdlog::info("--resume: {} records are kept", before.n_records);
  if (before.n_records > 0 && !options.seed && std::ranges::any_of(batch.requests, draws_without_seed)) {
    spdlog::warn(
        "--resume: without --seed, requests that set no seed draw other tokens than they would have");
  }
  output.keep(before.n_bytes);
  return before;
}

std::optional<ChatTemplate> template_for(const Options& options, const BatchFile& batch,
                                         const gguf::Reader& file, const Tokenizer& tokenizer) {
  if (options.chat) return require_chat_template(options, file, tokenizer);
  const auto has_messages = [](const BatchRequest& r) { return !r.messages.is_null(); };
  if (std::ranges::none_of(batch.requests, has_messages)) return std::nullopt;
  return load_chat_template(options, file, tokenizer);
}

PromptRules prompt_rules(const Options& options, const std::optional<ChatTemplate>& chat_template) {
  PromptRules rules{.chat_template = chat_template ? &*chat_template : nullptr,
                    .chat = options.chat,
                    .system_prompt = read_system_prompt(options),
                    .prefill_response = options.prefill_response.value_or(""),
                    .parse_special = options.parse_special};
  const std::time_t now = std::time(nullptr);
  localtime_r(&now, &rules.now);
  return rules;
}

// Room for the n_parallel largest; where memory is short for the largest alone, so that all can run; where
// even that is not to be had, for what fits: those that do not are errors of their own.
std::unique_ptr<Engine> make_batch_engine(const Device& device, const Options& options,
                                          const gguf::Reader& file, const Tokenizer& tokenizer,
                                          const std::vector<int32_t>& kv_needs, int32_t n_parallel) {
  const auto n_largest = std::min<size_t>(kv_needs.size(), static_cast<size_t>(n_parallel));
  const int64_t wanted =
      std::accumulate(kv_needs.begin(), kv_needs.begin() + static_cast<ptrdiff_t>(n_largest), int64_t{0});
  const auto n_wanted = static_cast<int32_t>(std::min<int64_t>(wanted, std::numeric_limits<int32_t>::max()));
  try {
    return make_engine(device, options, file, tokenizer, n_wanted, kv_needs.front());
  } catch (const Error& error) {
    if (error.code() != ExitCode::kDevice || kv_needs.back() == kv_needs.front()) throw;
    spdlog::warn("{}; trying with room for smaller requests only", error.what());
    return make_engine(device, options, file, tokenizer, n_wanted, kv_needs.back());
  }
}

// Whether a status line may be drawn: nothing else but the log is on that terminal.
bool may_animate(const Options& options) {
  if (options.quiet || ::isatty(STDERR_FILENO) != 1) return false;
  const char* term = std::getenv("TERM");
  if (term == nullptr || std::string_view(term) == "dumb") return false;
  return options.batch.output != "-" || ::isatty(STDOUT_FILENO) != 1;
}

void log_summary(size_t n_requests, size_t n_failed, const ScheduleStats& stats, double load_seconds) {
  const double rate = stats.seconds > 0 ? static_cast<double>(stats.n_generated_tokens) / stats.seconds : 0;
  spdlog::info("requests    {:>8}, {} failed; at most {} at once", n_requests, n_failed,
               stats.n_parallel_peak);
  spdlog::info("prompts     {:>8} tokens, {} of them copied from other requests", stats.n_prompt_tokens,
               stats.n_reused_tokens);
  spdlog::info("completions {:>8} tokens, {} near-ties (margin below {})", stats.n_generated_tokens,
               stats.n_near_ties, kNearTieMargin);
  spdlog::info("time        {:>8.3f} s after {:.3f} s of loading; {} with prefill among them", stats.seconds,
               load_seconds, stats.n_generated_tokens > 0 ? fmt::format("{:.2f} tokens/s", rate) : "n/a");
  spdlog::info("peak memory {:>8.1f} MB", static_cast<double>(peak_memory_bytes()) / 1e6);
}

ExitCode compute(const Options& options, const Device& device, const gguf::Reader& file,
                 const Tokenizer& tokenizer, BatchRun& run, size_t n_requests) {
  const std::vector<int32_t> kv_needs = run.kv_needs();
  ScheduleStats stats;
  double load_seconds = 0;
  if (!kv_needs.empty()) {
    ScheduleOptions schedule;
    schedule.n_parallel = options.batch.n_parallel > 0 ? options.batch.n_parallel
                          : device.is_cuda             ? kParallelCuda
                                                       : kParallelCpu;
    const auto engine = make_batch_engine(device, options, file, tokenizer, kv_needs, schedule.n_parallel);
    schedule.n_batch_rows = engine->max_batch_rows();  // the larger its pieces, the sooner a prompt is done
    load_seconds = seconds_since_start();
    BatchProgress progress(n_requests, n_requests - kv_needs.size(), may_animate(options));
    stats = run.compute(*engine, schedule, progress);
  }
  log_summary(n_requests, run.n_failed(), stats, load_seconds);
  if (run.n_failed() == 0) return ExitCode::kOk;
  throw Error(ExitCode::kRuntime,
              fmt::format("{} of {} requests failed; their records say why", run.n_failed(), n_requests));
}

}  // namespace

ExitCode run_batch(const Options& options) {
  const Device device = choose_device(options);
  const std::string input = read_input("--batch", options.batch.input);
  BatchOutput output(options.batch);
  const gguf::Reader file = gguf::Reader::open(options.model);
  const auto tokenizer = Tokenizer::from_metadata(file.metadata(), {.pretokenizer = options.pretokenizer});
  file.prefetch();
  const HParams hparams = HParams::read(file);
  const BatchFile batch = read_batch(options, input, generation_options(options, hparams), hparams);
  const auto chat_template = template_for(options, batch, file, *tokenizer);
  const Finished before = read_earlier(options, output, batch);
  const size_t n_requests = batch.requests.size();
  BatchRun run(batch.requests, *tokenizer, options.model.substr(options.model.rfind('/') + 1), output,
               before);
  try {
    run.prepare(prompt_rules(options, chat_template), hparams);
    return compute(options, device, file, *tokenizer, run, n_requests);
  } catch (const Error& error) {
    if (error.code() != ExitCode::kInterrupted) throw;
    spdlog::info("interrupted: {} of {} records are written{}", run.n_written(), n_requests,
                 options.batch.output == "-" ? "" : "; --resume goes on from there");
    return ExitCode::kInterrupted;
  }
}

}  // namespace minfer
