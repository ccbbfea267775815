// K and V of every sequence on the device, f16: one arena a layer, of which a sequence owns one contiguous
// extent.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include <cstdint>
#include <map>
#include <optional>

#include "core/batch.h"
#include "core/hparams.h"
#include "cuda/kernels/rows.h"
#include "cuda/runtime/buffer.h"

namespace minfer::cu {

// A request's need is known (prompt and completion), so extents come from a plain first-fit allocator: no
// paging.
class KvCache {
 public:
  struct Extent {
    int32_t first_slot = 0;
    int32_t n_slots = 0;
    int32_t length = 0;
  };

  // n_slots tokens of all sequences together. Zeroed: 0 times a stale NaN would be NaN.
  KvCache(const HParams& hparams, int32_t n_slots);
  static uint64_t bytes(const HParams& hparams, int64_t n_tokens);

  bool fits(int32_t n_tokens) const { return find_gap(n_tokens).has_value(); }
  SeqId reserve(int32_t n_tokens);
  void copy(SeqId src, SeqId dst, int32_t n, cudaStream_t stream);
  void truncate(SeqId seq, int32_t n);
  void free(SeqId seq);
  bool has(SeqId seq) const { return sequences_.contains(seq); }
  const Extent& extent(SeqId seq) const;
  void set_length(SeqId seq, int32_t n);
  KvArena arena(int32_t layer) const;

 private:
  Extent& find(SeqId seq);
  std::optional<int32_t> find_gap(int32_t n_tokens, int32_t* largest = nullptr) const;

  int32_t n_layer_, n_head_kv_, head_dim_, n_slots_;
  size_t layer_elements_;      // of K, or of V
  DeviceBuffer<half> arenas_;  // [n_layer, 2, n_head_kv, n_slots, head_dim]
  std::map<SeqId, Extent> sequences_;
  SeqId next_ = 0;
};

}  // namespace minfer::cu
