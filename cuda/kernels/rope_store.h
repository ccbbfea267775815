// Behind the q, k, v product: q/k norms (Qwen3), RoPE, and the store of k and v into the KV cache, in one
// pass. Su et al. 2021, RoFormer; Peng et al. 2023, YaRN.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include "cuda/kernels/rows.h"

namespace minfer::cu {

inline constexpr int kRopeMaxHeadDim = 256;

struct RopeStoreArgs {
  const float* qkv =
      nullptr;  // [n_tokens, (n_head + 2 n_head_kv) * head_dim]: q, k, v; rotated pairs are adjacent
  const float* q_norm = nullptr;  // [head_dim], in the rows' order, or null
  const float* k_norm = nullptr;  // [head_dim] or null
  // [n_rot / 2] angle of pair i at position p: p * freq[i] radians; in f64 products, since p * freq in f32 is
  // off by 1e-2 at 131,072. Linear scaling, YaRN and rope_freqs are folded in by the host
  // (core/rope_frequencies.h), as is `magnitude` (YaRN's mscale).
  const double* freq = nullptr;
  float magnitude = 1.0f;
  RowTable rows;
  half* q = nullptr;  // [n_tokens, n_head, head_dim], rotated
  KvArena kv;
  int n_tokens = 0, n_head = 0, n_head_kv = 0;
  int head_dim = 0;  // even, <= kRopeMaxHeadDim
  int n_rot = 0;     // even, <= head_dim: the dims behind it pass through
  float eps = 0;     // of the norms
};
// qkv, q_norm, k_norm and kv are 16-byte aligned, q 8-byte. Each head's norm sums in f32 in an order that
// depends on head_dim alone. What leaves the f16 range (a k of 1e5) becomes Inf. A row whose slot (first_slot
// + pos) is outside 0 .. n_slots-1 stores nothing into the cache and its q is NaN, so that its logits stop
// the run.
void rope_store(const RopeStoreArgs& a, cudaStream_t stream);

}  // namespace minfer::cu
