// Causal attention of many query rows over the KV cache. Dao 2023, FlashAttention-2.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include "cuda/kernels/rows.h"

namespace minfer::cu {

// A run of consecutive rows of the batch that belong to one sequence, in ascending positions.
struct FlashSegment {
  int first_row = 0, n_rows = 0;
  int first_pos = 0;   // position of first_row; the keys of row r are positions 0 .. first_pos + r
  int first_slot = 0;
};

// One block of q rows of one segment. The host lists them, longest first, so that the last to start are short.
struct FlashTile {
  int segment_first_row = 0, segment_n_rows = 0, first_pos = 0, first_slot = 0;
  int row = 0;  // first row of the tile within its segment
};

struct FlashPrefillArgs {
  const half* q = nullptr;           // [n_tokens, n_head, head_dim]
  KvArena kv;
  half* out = nullptr;               // [n_tokens, n_head, head_dim]
  const FlashTile* tiles = nullptr;  // device, [n_tiles], of flash_prefill_tile_rows(head_dim) rows each
  int n_tiles = 0;
  int n_head = 0, n_head_kv = 0, head_dim = 0;  // head_dim 64, 96, 128 or 256
  float scale = 0;                   // 1 / sqrt(head_dim)
};
int flash_prefill_tile_rows(int head_dim);
// Scores and softmax in f32, P rounded to f16 for P*V, sums in f32. A row without keys gets 0.
void flash_prefill(const FlashPrefillArgs& a, cudaStream_t stream);

}  // namespace minfer::cu
