// What computes logits. The runner (generator, batches, benchmarks) knows engines through this alone.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/batch.h"
#include "core/hparams.h"

namespace minfer {

class Engine {
 public:
  virtual ~Engine() = default;

  virtual const HParams& hparams() const = 0;
  virtual std::string description() const = 0;  // "cpu, 2 threads, avx512"
  // Bytes of KV cache that a sequence of n tokens takes.
  virtual uint64_t kv_bytes(int32_t n_tokens) const = 0;

  // Whether kv_reserve(n_tokens) would find room now.
  virtual bool kv_fits(int32_t n_tokens) const = 0;
  // Rows that go through the layers together: a larger batch is cut into groups of so many.
  virtual int32_t max_batch_rows() const = 0;

  // A new sequence of length 0 with room for n_tokens. Throws Error(kDevice), needed and available printed,
  // where there is no room; nothing changes then.
  virtual SeqId kv_reserve(int32_t n_tokens) = 0;
  // The first n tokens of src become dst's whole content. n <= length of src and <= room of dst.
  virtual void kv_copy(SeqId src, SeqId dst, int32_t n) = 0;
  // Keeps the first n tokens of a sequence. n <= its length.
  virtual void kv_truncate(SeqId seq, int32_t n) = 0;
  virtual void kv_free(SeqId seq) = 0;
  virtual int32_t kv_length(SeqId seq) const = 0;

  // Runs every row through the model, appends its K and V, and answers the rows that want something, in batch
  // order. The span is valid until the next call. How a prompt is cut into batches does not change a row's
  // result in the reference engine; in an engine with several regimes (a few rows, many rows) results may
  // differ in rounding between these, and do not within one. Throws Error(kRuntime) where the batch breaks
  // its contract (token, position, room), and Error(kInterrupted) on Ctrl-C; every sequence then has the
  // length that it had before the rows under way (an engine runs a large batch in groups of rows).
  virtual std::span<const RowResult> forward(const Batch& batch) = 0;
};

// Throws Error(kRuntime) naming step and layer where a result is not finite.
void check_finite(const RowResult& result, const Engine& engine, int64_t step);

}  // namespace minfer
