#include <spdlog/spdlog.h>

#include <nlohmann/json.hpp>

#include "apps/device.h"
#include "apps/input.h"
#include "apps/modes.h"
#include "apps/output.h"
#include "core/error.h"
#include "core/json_line.h"
#include "core/perplexity.h"
#include "core/process.h"

namespace minfer {
namespace {

constexpr int32_t kDefaultWindow = 512;

struct Source {
  std::string text_name, model_name, device;
  int32_t n_ctx = 0;
  double load_seconds = 0;
};

std::string header(const Source& source, size_t n_tokens) {
  const auto n_windows = n_tokens / static_cast<size_t>(source.n_ctx);
  return fmt::format(
      "{:<10}{}\n{:<10}{}\n{:<10}{}: {} tokens, {} windows of {}, of which the second half is scored\n"
      "{:>7} {:>9} {:>12} {:>10}\n",
      "model", source.model_name, "device", source.device, "text", source.text_name, n_tokens, n_windows,
      source.n_ctx, "window", "scored", "perplexity", "+/-");
}

std::string row(const PerplexityWindow& w) {
  return fmt::format("{:>7} {:>9} {:>12.4f} {:>10.4f}\n", w.index + 1, w.n_scored, w.perplexity,
                     w.uncertainty);
}

std::string json_row(const PerplexityWindow& w) {
  return json_line({{"window", w.index + 1},
                    {"windows", w.n_windows},
                    {"scored", w.n_scored},
                    {"perplexity", w.perplexity},
                    {"uncertainty", w.uncertainty}});
}

std::string conclusion(const PerplexityResult& r) {
  return fmt::format("perplexity {:.4f} +/- {:.5f} ({} tokens scored in {} windows)\n", r.perplexity,
                     r.uncertainty, r.n_scored, r.n_windows);
}

double tokens_per_second(const PerplexityResult& r) {
  return static_cast<double>(r.n_run) / r.seconds;
}

std::string json_conclusion(const PerplexityResult& r, const Source& source, double total_seconds) {
  nlohmann::ordered_json json{
      {"perplexity", r.perplexity}, {"uncertainty", r.uncertainty}, {"scored", r.n_scored},
      {"windows", r.n_windows},     {"n_ctx", source.n_ctx},        {"tokens", r.n_tokens},
      {"text", source.text_name},   {"model", source.model_name},   {"device", source.device}};
  json["timings"] = {{"load_s", source.load_seconds}, {"forward_s", r.seconds},
                     {"forward_tokens", r.n_run},     {"forward_tokens_per_s", nullptr},
                     {"total_s", total_seconds},      {"peak_memory_bytes", peak_memory_bytes()}};
  if (r.seconds > 0) json["timings"]["forward_tokens_per_s"] = tokens_per_second(r);
  return json_line(json);
}

void log_timings(const PerplexityResult& r, double load_seconds, double total_seconds) {
  spdlog::info("{:<12}{:>27.3f} s", "load", load_seconds);
  spdlog::info("{:<12}{:>8} tokens {:>12.1f} ms {:>21}", "forward", r.n_run, r.seconds * 1e3,
               r.seconds > 0 ? fmt::format("{:.2f} tokens/s", tokens_per_second(r)) : "n/a");
  spdlog::info("{:<12}{:>27.3f} s, peak memory {:.1f} MB", "total", total_seconds,
               static_cast<double>(peak_memory_bytes()) / 1e6);
}

}  // namespace

ExitCode run_perplexity(const Options& options) {
  const Device device = choose_device(options);
  const std::string text = read_input("--perplexity", options.perplexity_file);
  // Waiting for a pipe is no loading.
  const double waited = options.perplexity_file == "-" ? seconds_since_start() : 0;
  const gguf::Reader file = gguf::Reader::open(options.model);
  const auto tokenizer = Tokenizer::from_metadata(file.metadata(), {.pretokenizer = options.pretokenizer});
  file.prefetch();
  const int32_t n_ctx = options.generation.n_ctx > 0 ? options.generation.n_ctx : kDefaultWindow;
  const auto ids = tokenizer->encode(text);
  check_perplexity_length(ids.size(), n_ctx);
  if (const int32_t n_trained = HParams::read(file).n_ctx_train; n_ctx > n_trained) {
    spdlog::warn("windows of {} tokens: the model was trained with a context of {}", n_ctx, n_trained);
  }
  const auto engine = make_engine(device, options, file, *tokenizer, n_ctx);
  const Source source{.text_name = options.perplexity_file,
                      .model_name = file.name(),
                      .device = engine->description(),
                      .n_ctx = n_ctx,
                      .load_seconds = seconds_since_start() - waited};

  if (!options.json) write_stdout(header(source, ids.size()));
  const auto print = [&](const PerplexityWindow& w) { write_stdout(options.json ? json_row(w) : row(w)); };
  const PerplexityResult result = perplexity(*engine, *tokenizer, ids, n_ctx, print, options.n_threads);
  const double total_seconds = seconds_since_start() - waited;
  write_stdout(options.json ? json_conclusion(result, source, total_seconds) : conclusion(result));
  log_timings(result, source.load_seconds, total_seconds);
  return ExitCode::kOk;
}

}  // namespace minfer
