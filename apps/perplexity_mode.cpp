#include <spdlog/spdlog.h>

#include <nlohmann/json.hpp>

#include "apps/device.h"
#include "apps/input.h"
#include "apps/modes.h"
#include "apps/output.h"
#include "core/error.h"
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

// JSON takes valid UTF-8 only, which a path need not be.
std::string dump(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

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
  return dump({{"window", w.index + 1},
               {"windows", w.n_windows},
               {"scored", w.n_scored},
               {"perplexity", w.perplexity},
               {"uncertainty", w.uncertainty}});
}

double tokens_per_second(const PerplexityResult& r) {
  return r.seconds > 0 ? static_cast<double>(r.n_run) / r.seconds : 0;
}

std::string conclusion(const PerplexityResult& r) {
  return fmt::format("perplexity {:.4f} +/- {:.5f} ({} tokens scored in {} windows)\n", r.perplexity,
                     r.uncertainty, r.n_scored, r.n_windows);
}

std::string json_conclusion(const PerplexityResult& r, const Source& source) {
  nlohmann::ordered_json j{{"perplexity", r.perplexity},
                           {"uncertainty", r.uncertainty},
                           {"scored", r.n_scored},
                           {"windows", r.n_windows},
                           {"n_ctx", source.n_ctx},
                           {"tokens", r.n_tokens},
                           {"tokens_run", r.n_run},
                           {"seconds", r.seconds},
                           {"tokens_per_second", nullptr},
                           {"load_seconds", source.load_seconds},
                           {"peak_memory_bytes", peak_memory_bytes()},
                           {"text", source.text_name},
                           {"model", source.model_name},
                           {"device", source.device}};
  if (r.seconds > 0) j["tokens_per_second"] = tokens_per_second(r);
  return dump(j);
}

void log_timings(const PerplexityResult& r, double load_seconds) {
  spdlog::info("load    {:26.3f} s", load_seconds);
  spdlog::info("forward {:8} tokens {:10.3f} s {}", r.n_run, r.seconds,
               r.seconds > 0 ? fmt::format("{:8.2f} tokens/s", tokens_per_second(r)) : "     n/a");
  spdlog::info("total   {:26.3f} s, peak memory {:.1f} MB", seconds_since_start(),
               static_cast<double>(peak_memory_bytes()) / 1e6);
}

}  // namespace

ExitCode run_perplexity(const Options& options) {
  const Device device = choose_device(options);
  const std::string text = read_input("--perplexity", options.perplexity_file);
  const double before_load = options.perplexity_file == "-" ? seconds_since_start() : 0;
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
                      .load_seconds = seconds_since_start() - before_load};

  if (!options.json) write_stdout(header(source, ids.size()));
  const PerplexityResult result = perplexity(*engine, *tokenizer, ids, n_ctx, [&](const PerplexityWindow& w) {
    write_stdout(options.json ? json_row(w) : row(w));
  });
  write_stdout(options.json ? json_conclusion(result, source) : conclusion(result));
  log_timings(result, source.load_seconds);
  return ExitCode::kOk;
}

}  // namespace minfer
