// Two engines on one prompt: how far the second one's logits are from the first one's.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/engine.h"

namespace minfer {

// What f16 operands explain. On models of two to four layers they cost 0.9e-3 to 2.5e-3 of a row's norm on
// average (the last with outliers among the activations; f32 against f16 runs of the same weights); rounding
// errors of layers add up like a random walk, so 28 layers cost sqrt(28 / 4) = 2.6 times as much. 2.5e-3 at
// four layers, and 1.5 times that is a fault somewhere: 3.75e-3 at four layers (and fewer: most of theirs is
// the head's), 9.9e-3 at 28.
double mean_tolerance(int32_t n_layer);
// A single row: a model with outliers had one at 2.3 times its mean; 4 leaves room for longer tails.
double row_tolerance(int32_t n_layer);
// Which token is chosen: in so many of the rows whose choice is clear, where the reference's best logit leads
// by so much. Closer ones may fall either way.
inline constexpr float kClearMargin = 0.05f;
inline constexpr double kClearAgreement = 0.99;

struct VerifyOptions {
  int32_t n_generate = 32;  // rows behind the prompt, each fed what the reference chose
  bool layers = false;      // errors by layer too: both engines are LayerProbed
};

struct RowDifference {
  int32_t pos = 0;                       // of the row: prompt, then generated
  TokenId reference = 0, candidate = 0;  // what they chose
  float margin = 0;                      // of the reference: its best logit minus its second best
  double error = 0;                      // of the row
};

// ||candidate - reference|| / ||reference||, over several rows.
struct ErrorSummary {
  double mean = 0, worst = 0;
  int32_t worst_pos = 0;
};

struct VerifyReport {
  int32_t n_layer = 0;
  int32_t n_prompt = 0, n_generated = 0;
  ErrorSummary logits;
  int32_t n_argmax_equal = 0;
  int32_t n_clear = 0, n_clear_equal = 0;         // rows with kClearMargin or more; the same choice in them
  std::optional<RowDifference> first_difference;  // the first row whose argmax differs
  std::optional<int32_t> first_not_finite;        // position of the candidate's first row that is not finite
  std::vector<ErrorSummary> layers;  // of the residual stream behind each layer; empty where not asked for

  int32_t n_rows() const { return n_prompt + n_generated; }
  // All rows finite, errors within mean_tolerance and row_tolerance, n_clear_equal at least kClearAgreement
  // of n_clear.
  bool passed() const;
};

double relative_error(std::span<const float> candidate, std::span<const float> reference);

// Runs the prompt and n_generate greedy steps of the reference through both. Needs KV for prompt and
// n_generate in both. Throws Error(kRuntime) where the reference itself is not finite, Error(kInterrupted) on
// Ctrl-C.
VerifyReport verify(Engine& reference, Engine& candidate, std::span<const TokenId> prompt,
                    const VerifyOptions& options);

}  // namespace minfer
