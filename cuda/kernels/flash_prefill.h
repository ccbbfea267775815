// Causal attention of many query rows over the KV cache. Dao 2023, FlashAttention-2.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include <span>
#include <vector>

#include "cuda/kernels/rows.h"

namespace minfer::cu {

// A run of consecutive rows of the batch that belong to one sequence, in ascending positions.
struct FlashSegment {
  int first_row = 0, n_rows = 0;
  int first_pos =
      0;  // position of first_row; the keys of row r are positions 0 .. first_pos + r, none where that is < 0
  int first_slot = 0;
};

// One block of q rows of one segment.
struct FlashTile {
  int segment_first_row = 0, segment_n_rows = 0, first_pos = 0, first_slot = 0;
  int row = 0;  // first row of the tile within its segment
};

// The tiles of these segments (an empty segment has none), longest first, so that the last to start are
// short.
std::vector<FlashTile> flash_prefill_tiles(std::span<const FlashSegment> segments, int head_dim);
int flash_prefill_tile_rows(int head_dim);  // throws Error where head_dim is not 64, 96, 128 or 256

struct FlashPrefillArgs {
  const half* q = nullptr;  // [n_tokens, n_head, head_dim], 16-byte aligned
  KvArena kv;
  half* out = nullptr;               // [n_tokens, n_head, head_dim], 16-byte aligned, may be q itself
  const FlashTile* tiles = nullptr;  // device, [n_tiles]
  int n_tiles = 0;
  int n_head = 0, n_head_kv = 0, head_dim = 0;  // head_dim 64, 96, 128 or 256
  float scale = 0;                              // 1 / sqrt(head_dim)
};
// Scores and softmax in f32, P rounded to f16 for P*V, sums in f32. A row without keys gets 0.
//
// Reads slots first_slot .. first_slot + (last position of the tile) only: what lies in others, NaN included,
// has no effect. A row's sums run over its keys from position 0 on, in steps that head_dim alone decides: its
// result has the same bits whatever tile, chunk of a prompt or batch it stands in.
void flash_prefill(const FlashPrefillArgs& a, cudaStream_t stream);

}  // namespace minfer::cu
