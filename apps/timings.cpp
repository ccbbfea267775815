#include "apps/timings.h"

#include <spdlog/spdlog.h>

#include "core/process.h"

namespace minfer {
namespace {

std::optional<double> rate(int32_t n, double seconds) {
  if (n <= 0 || seconds <= 0) return std::nullopt;
  return n / seconds;
}

std::string seconds_or_na(std::optional<double> seconds) {
  return seconds ? fmt::format("{:.3f} s", *seconds) : "n/a";
}

void log_phase(const char* name, int32_t n, double seconds, std::optional<double> per_second,
               const std::string& remark = "") {
  spdlog::info("{:<12}{:>8} tokens {:>12.1f} ms {:>21}{}", name, n, seconds * 1e3,
               per_second ? fmt::format("{:.2f} tokens/s", *per_second) : "n/a", remark);
}

nlohmann::ordered_json or_null(std::optional<double> value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

}  // namespace

Timings::Timings(const Generation& generation, std::optional<double> load, double total)
    : load_seconds(load),
      n_prefilled(generation.n_prompt - generation.n_reused),
      n_reused(generation.n_reused),
      prefill_seconds(generation.prefill_seconds),
      n_decoded(generation.ids.empty() ? 0 : static_cast<int32_t>(generation.ids.size()) - 1),
      decode_seconds(generation.decode_seconds),
      total_seconds(total) {
  if (!generation.ids.empty()) first_token_seconds = load.value_or(0) + prefill_seconds;
}

std::optional<double> Timings::prefill_tokens_per_second() const {
  return rate(n_prefilled, prefill_seconds);
}

std::optional<double> Timings::decode_tokens_per_second() const {
  return rate(n_decoded, decode_seconds);
}

void log_timings(const Timings& t) {
  if (t.load_seconds) spdlog::info("{:<12}{:>29}", "load", seconds_or_na(t.load_seconds));
  log_phase("prefill", t.n_prefilled, t.prefill_seconds, t.prefill_tokens_per_second(),
            t.n_reused > 0 ? fmt::format(", {} more reused", t.n_reused) : "");
  log_phase("decode", t.n_decoded, t.decode_seconds, t.decode_tokens_per_second());
  spdlog::info("{:<12}{:>29}", "first token", seconds_or_na(t.first_token_seconds));
  spdlog::info("{:<12}{:>29}, peak memory {:.1f} MB", "total", seconds_or_na(t.total_seconds),
               static_cast<double>(peak_memory_bytes()) / 1e6);
}

nlohmann::ordered_json to_json(const Timings& t) {
  return {{"load_s", or_null(t.load_seconds)},
          {"prefill_s", t.prefill_seconds},
          {"first_token_s", or_null(t.first_token_seconds)},
          {"decode_s", t.decode_seconds},
          {"total_s", t.total_seconds},
          {"prefill_tokens_per_s", or_null(t.prefill_tokens_per_second())},
          {"decode_tokens_per_s", or_null(t.decode_tokens_per_second())},
          {"peak_memory_bytes", peak_memory_bytes()}};
}

}  // namespace minfer
