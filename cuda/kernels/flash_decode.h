// Attention of a few query rows (1 to 8, each with its own sequence and length) over the KV cache, split over the keys
// and combined in a fixed order. Dao et al. 2023, Flash-Decoding.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include <cstddef>

#include "cuda/kernels/rows.h"

namespace minfer::cu {

struct FlashDecodeArgs {
  const half* q = nullptr;    // [n_tokens, n_head, head_dim]
  KvArena kv;
  RowTable rows;              // the keys of row t are positions 0 .. pos[t] of its sequence
  half* out = nullptr;        // [n_tokens, n_head, head_dim]
  float* partials = nullptr;  // flash_decode_partials(...) floats of scratch
  int n_tokens = 0, n_head = 0, n_head_kv = 0, head_dim = 0;
  float scale = 0;
};
size_t flash_decode_partials(int n_tokens, int n_head, int head_dim);
// The grid does not depend on positions. How keys are split depends on a row's own length alone.
void flash_decode(const FlashDecodeArgs& a, cudaStream_t stream);

}  // namespace minfer::cu
