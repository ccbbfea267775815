// K in parts: adding up what the parts' blocks have summed. Part of gemm.cu.
//
// Few rows are one row of tiles, and of those a narrow B has fewer than the card has SMs: 3584 rows of B are
// 56 tiles of 64, so that 76 of 132 SMs would read nothing. A block a part then leaves its sums in memory,
// and the last one of a tile to come adds up all parts in ascending order, whoever came when. Of 64 rows on
// an H200, medians of one run ("gemm_parts: speed"): qkv (4608 x 3584) 20.6 -> 16.0 us in the 3 parts that it
// gets (1.29 times), o (3584 x 3584) 20.0 -> 14.2 in its 4 (1.41 times), down (3584 x 18944) 89.5 -> 45.8 in
// 4 (1.95 times) and 65.6 in 8. gemm_parts() gives down 9, which is too many. Ledger of down in 4: 3.7 MB
// written and read again, in L2, beside 136 MB of B.
#pragma once

#include <cstdint>

#include "cuda/device/arrive.h"
#include "cuda/kernels/gemm_epilogue.h"

namespace minfer::cu {

// visit(i, four sums) for i = 0, 1 ...
template <class Sums, typename Visit>
__device__ void for_each_vector(Sums& sums, const Visit& visit) {
  static_assert(!Sums::kOdd);
  int i = 0;
#pragma unroll
  for (int m = 0; m < Sums::kMmaM; ++m) {
#pragma unroll
    for (int j = 0; j < Sums::kGroups; ++j) {
#pragma unroll
      for (int half = 0; half < 2; ++half) visit(i++, sums.group[m][j][half]);
    }
  }
}

// Leaves this block's sums in memory, [tile, part, vector, thread] of four each. True in the last block of a
// tile to come: its sums are then those of all parts.
template <int kThreads, class Sums>
__device__ bool add_up_parts(const GemmArgs& p, Sums& sums) {
  constexpr int64_t kPart = int64_t{Sums::kMmaM} * Sums::kGroups * 2 * kThreads;
  const int n_parts = gridDim.y;
  float4* of_tile = reinterpret_cast<float4*>(p.split.partials) + blockIdx.x * n_parts * kPart + threadIdx.x;
  float4* mine = of_tile + blockIdx.y * kPart;
  for_each_vector(
      sums, [&](int i, const float(&v)[4]) { mine[i * kThreads] = make_float4(v[0], v[1], v[2], v[3]); });
  __shared__ bool is_last;
  __syncthreads();  // every thread's sums are written before thread 0 tells the other blocks
  if (threadIdx.x == 0) {
    const auto n = static_cast<uint32_t>(n_parts);
    is_last = arrive_and_wrap(p.split.arrivals + blockIdx.x, n) + 1 == n;
  }
  __syncthreads();  // is_last is written, and the parts of the blocks before this one can be seen
  if (!is_last) return false;
  sums = {};
#pragma unroll 2
  for (int part = 0; part < n_parts; ++part, of_tile += kPart) {
    for_each_vector(sums, [&](int i, float(&v)[4]) {
      const float4 more = __ldcg(of_tile + i * kThreads);
      v[0] += more.x, v[1] += more.y, v[2] += more.z, v[3] += more.w;
    });
  }
  return true;
}

}  // namespace minfer::cu
