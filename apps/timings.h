// What a completion cost: as lines of the log, and as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "core/completion.h"

namespace minfer {

struct Timings {
  std::optional<double> load_seconds;         // up to the prefill; nothing where the model was there already
  std::optional<double> first_token_seconds;  // load and prefill; nothing where no token came
  int32_t n_prefilled = 0;                    // tokens of the prompt that were computed
  int32_t n_reused = 0;                       // and those whose KV was there
  double prefill_seconds = 0;
  int32_t n_decoded = 0;  // all but the first token, which comes out of the prefill
  double decode_seconds = 0;
  double total_seconds = 0;

  // total_seconds: load, prefill, decode and what stands between.
  Timings(const Generation& generation, std::optional<double> load_seconds, double total_seconds);

  // n tokens in these seconds; nothing where there is nothing to divide.
  std::optional<double> prefill_tokens_per_second() const;
  std::optional<double> decode_tokens_per_second() const;
};

void log_timings(const Timings& timings);
// null where there is nothing to tell.
nlohmann::ordered_json to_json(const Timings& timings);

}  // namespace minfer
