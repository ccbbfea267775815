// The tiles that gemm.cu is built for: how each is laid over warps and shared memory. For gemm.cu and the
// choice of a tile; callers of gemm need gemm.h alone.
#pragma once

#include "cuda/kernels/gemm.h"

namespace minfer::cu {

struct GemmGeometry {
  int warps_m = 0, warps_n = 0;  // warps side by side over the tile's rows of A and rows of B
  int stage_bytes = 0, stages = 0;
  int blocks_per_sm = 0;  // what registers and shared memory are cut for

  constexpr int threads() const { return 32 * warps_m * warps_n; }
  constexpr int shared_bytes() const { return stage_bytes * stages; }
};

// Shared memory: two blocks an SM take 100 KB each, one block 160 KB (an A100 has 163 a block, an H200 227).
// The exception is TM 256 with KS 64 and A in f16: four stages are 192 KB, for cards that have them; on
// others KS 32 does as well. Four stages are enough: three under way are 72 KB an SM and more, where 1 us of
// latency at the 40 KB/us that an SM is fed with needs 40. With KS 32 every tile fits the 99 KB of the
// smaller cards.
constexpr GemmGeometry gemm_geometry(const GemmTile& t, bool f32_a) {
  GemmGeometry g;
  const bool wide = t.bm == 128 && t.tm > 128;  // 8 warps of 64 x TM/4, else 4 warps
  g.warps_m = t.bm == 64 && t.tm == 256 ? 1 : 2;
  g.warps_n = wide || g.warps_m == 1 ? 4 : 2;
  g.blocks_per_sm = wide ? 1 : 2;
  g.stage_bytes = (t.bm * (f32_a ? 4 : 2) + t.tm * 2) * t.ks;
  const int kilobytes = !wide ? 100 : t.tm == 256 && !f32_a ? 192 : 160;
  const int fitting = kilobytes * 1024 / g.stage_bytes;
  g.stages = fitting < 4 ? fitting : 4;
  return g;
}

// Every tile there is; those of TM 192 and 224 for f16 operands only. They are there for wave arithmetic:
// 2048 x 4608 is 384 tiles of 128 x 192 (2.91 waves of 132 SMs), 2048 x 3584 is 256 of 128 x 224 (1.94); of
// 128 x 256, 2.18 and 1.70.
inline constexpr GemmTile kGemmTiles[] = {
    {64, 64, 32},   {64, 64, 64},   {64, 128, 32},  {64, 128, 64},  {64, 256, 32},
    {64, 256, 64},  {128, 64, 32},  {128, 64, 64},  {128, 128, 32}, {128, 128, 64},
    {128, 256, 32}, {128, 256, 64}, {128, 192, 64}, {128, 224, 64},
};
constexpr bool gemm_takes_f32_a(const GemmTile& t) {
  return t.tm != 192 && t.tm != 224;
}

// The tile that sums parts of K; a part is whole k steps of it.
inline constexpr GemmTile kGemmSplitTile = {64, 64, 64};
static_assert(kGemmSplitTile.bm == kMaxGemmSplitRows);
static_assert(size_t{kMaxGemmPartBlocks} * kGemmSplitTile.bm * kGemmSplitTile.tm == kGemmPartials);
constexpr int gemm_part_length(int id, int n_parts) {
  const int n_steps = (id + kGemmSplitTile.ks - 1) / kGemmSplitTile.ks;
  return (n_steps + n_parts - 1) / n_parts * kGemmSplitTile.ks;
}

// Estimated clocks of the product on a card of n_sm multiprocessors.
double gemm_cycles(const GemmTile& tile, bool f32_a, int nt, int od, int id, int n_sm);

}  // namespace minfer::cu
