// Attention of single query rows (decode: each with its own sequence and length) over the KV cache, split
// over the keys and combined in a fixed order. Dao et al. 2023, Flash-Decoding.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "cuda/kernels/rows.h"

namespace minfer::cu {

struct FlashDecodeArgs {
  const half* q = nullptr;  // [n_tokens, n_head, head_dim], 16-byte aligned
  KvArena kv;
  RowTable rows;  // the keys of row t are positions 0 .. pos[t] of its sequence, none where pos[t] is < 0
  half* out = nullptr;        // [n_tokens, n_head, head_dim], may be q itself
  float* partials = nullptr;  // flash_decode_partials(...) floats of scratch, 16-byte aligned
  // [n_tokens, n_head], 0 before the first launch, and left 0: the last block of a row and KV head combines
  // its splits. Null: a second launch does, with the same bits.
  uint32_t* arrivals = nullptr;
  int n_tokens = 0, n_head = 0, n_head_kv = 0, head_dim = 0;  // head_dim 64, 96, 128 or 256
  float scale = 0;                                            // 1 / sqrt(head_dim)
  // The splits that get blocks: at least flash_decode_splits() of the longest row; 0: as many as a row can
  // use. Blocks without keys cost many rows more time than the others take (64 rows of 512 keys: 15 of 16).
  int n_splits = 0;
};
// How many splits a row of n_keys keys uses.
int flash_decode_splits(int n_keys, int n_head, int n_head_kv);
size_t flash_decode_partials(int n_tokens, int n_head, int head_dim);
// Scores and softmax in f32, P rounded to f16 for P*V, sums in f32. A row without keys gets 0.
//
// Reads slots first_slot .. first_slot + pos[t] only. The grid does not depend on positions; how a row's keys
// are split, and so the bits of its result, depends on pos[t], n_head and n_head_kv alone, not on n_tokens,
// n_splits or other rows.
void flash_decode(const FlashDecodeArgs& a, cudaStream_t stream);

}  // namespace minfer::cu
