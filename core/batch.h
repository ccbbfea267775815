// What an engine is asked to compute in one forward pass, and what it answers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace minfer {

using TokenId = int32_t;
using SeqId = int32_t;

// In place of an id: "what this sequence's last row that asked for a result chose", so that a decode step can be
// queued before the host has seen the last one.
inline constexpr TokenId kLastArgmax = -1;

enum class Want : uint8_t {
  kNothing,  // only the KV of this row
  kArgmax,   // argmax, margin, finite
  kLogits,   // those, and the whole row of logits
};

struct Row {
  TokenId token = 0;
  int32_t pos = 0;  // position in the sequence: its KV length before this row
  SeqId seq = 0;
  Want want = Want::kNothing;
};

// Rows of one sequence stand together, in ascending positions that continue the sequence's KV without a gap.
struct Batch {
  std::vector<Row> rows;

  void add(SeqId seq, int32_t pos, TokenId token, Want want = Want::kNothing) { rows.push_back({token, pos, seq, want}); }
};

struct RowResult {
  int32_t row = 0;        // index into Batch::rows
  TokenId argmax = 0;     // lowest id where several are equal; never beyond the tokenizer's vocabulary
  float max_logit = 0;
  float margin = 0;       // max_logit minus the second largest
  int32_t bad_layer = -1; // first layer whose output was not finite (n_layer: only the logits); -1: all finite
  std::span<const float> logits{};  // [n_vocab] for Want::kLogits, else empty; valid until the next forward()

  bool finite() const { return bad_layer < 0; }
};

}  // namespace minfer
