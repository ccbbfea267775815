// What becomes of a warp's sums: bias, residual, SwiGLU. Part of gemm.cu.
//
// A lane holds rows row + 8 i (i < 2 kMmaM) and, of each group of 16 columns, the four from 4 (lane % 4) on;
// kOdd adds eight columns, two a lane. So four lanes store 64 adjacent bytes of f32, whole 32-byte sectors.
#pragma once

#include <cstdint>

#include "cuda/device/vec.h"
#include "cuda/kernels/gemm.h"

namespace minfer::cu {

// A lane's sums, by m16 tile, column group, n8 tile of the group and register.
template <int kMmaRows, int kColumnGroups, bool kOddColumns>
struct GemmSums {
  static constexpr int kMmaM = kMmaRows, kGroups = kColumnGroups;
  static constexpr bool kOdd = kOddColumns;
  float group[kMmaM][kGroups][2][4] = {};
  float odd[kMmaM][4] = {};
};

// kN adjacent columns of kRows rows row, row + 8, ...: out_f32 = value + bias, or out_f32 += value * scale.
template <int kN, int kRows, class Value>
__device__ void store_f32(const GemmArgs& p, int row, int col, const Value& value) {
  struct alignas(4 * kN) Vector {
    float v[kN];
  };
  const bool add = p.epilogue == GemmEpilogue::kResidual;
  const float scale = add ? p.scale : 1.0f;
  float* out = p.out_f32 + static_cast<int64_t>(row) * p.od + col;
  const int64_t step = 8 * static_cast<int64_t>(p.od);
  float bias[kN];
#pragma unroll
  for (int e = 0; e < kN; ++e) bias[e] = p.bias != nullptr && col + e < p.od ? p.bias[col + e] : 0.0f;
  if (p.od % 4 == 0) {  // all of the columns are C's, or none is; and they are aligned
    if (col >= p.od) return;
    Vector old[kRows];
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      if (add && row + 8 * i < p.nt) old[i] = *reinterpret_cast<const Vector*>(out + i * step);
    }
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      Vector sum;
#pragma unroll
      for (int e = 0; e < kN; ++e)
        sum.v[e] = add ? fmaf(value(i, e), scale, old[i].v[e]) : value(i, e) + bias[e];
      if (row + 8 * i < p.nt) *reinterpret_cast<Vector*>(out + i * step) = sum;
    }
    return;
  }
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
#pragma unroll
    for (int e = 0; e < kN; ++e) {
      if (row + 8 * i >= p.nt || col + e >= p.od) continue;
      float& c = out[i * step + e];
      c = add ? fmaf(value(i, e), scale, c) : value(i, e) + bias[e];
    }
  }
}

// In f32: exp(-x) leaves the f16 range below x = -11, where silu(x) itself still fits.
__device__ inline float silu(float x) {
  return __fdividef(x, 1.0f + __expf(-x));
}

__device__ inline void store_half(const GemmArgs& p, int row, int col, float v) {
  const int n_out = p.od / 2;
  if (row < p.nt && col < n_out) p.out_f16[static_cast<int64_t>(row) * n_out + col] = __float2half_rn(v);
}

// Two column groups: 16 outputs a row. A lane has two of either group; it trades with its neighbour for four
// of one, so that four lanes fill a 32-byte sector. Both lanes have the same row.
__device__ inline void store_swiglu_pair(const GemmArgs& p, const float (&v)[2][2], int lane, int row,
                                         int col) {
  const int n_out = p.od / 2, odd = lane & 1;
  const uint32_t mine[2] = {pack_half2(v[0][0], v[0][1]), pack_half2(v[1][0], v[1][1])};
  const uint32_t theirs = __shfl_xor_sync(~0u, odd ? mine[0] : mine[1], 1);
  const uint2 four = odd ? make_uint2(theirs, mine[1]) : make_uint2(mine[0], theirs);
  col += odd * 8 + (lane & 2) * 2;
  if (row >= p.nt || col >= n_out) return;
  *reinterpret_cast<uint2*>(p.out_f16 + static_cast<int64_t>(row) * n_out + col) = four;
}

// out_f16[., j] = silu(c[., 2j]) * c[., 2j + 1] * scale.
template <class Sums>
__device__ void store_swiglu(const GemmArgs& p, const Sums& sums, int lane, int row, int col) {
#pragma unroll
  for (int i = 0; i < 2 * Sums::kMmaM; ++i) {
    const auto product = [&](const float(&c)[4]) { return silu(c[i % 2 * 2]) * c[i % 2 * 2 + 1] * p.scale; };
#pragma unroll
    for (int j = 0; j < Sums::kGroups; j += 2) {
      float v[2][2];
#pragma unroll
      for (int g = 0; g < 2 && j + g < Sums::kGroups; ++g) {
        v[g][0] = product(sums.group[i / 2][j + g][0]);
        v[g][1] = product(sums.group[i / 2][j + g][1]);
      }
      const int first = col / 2 + j * 8;
      if (j + 1 < Sums::kGroups && p.od % 8 == 0) {
        store_swiglu_pair(p, v, lane, row + 8 * i, first);
        continue;
      }
#pragma unroll
      for (int g = 0; g < 2 && j + g < Sums::kGroups; ++g) {
        store_half(p, row + 8 * i, first + g * 8 + lane % 4 * 2, v[g][0]);
        store_half(p, row + 8 * i, first + g * 8 + lane % 4 * 2 + 1, v[g][1]);
      }
    }
    if constexpr (Sums::kOdd) {
      store_half(p, row + 8 * i, col / 2 + Sums::kGroups * 8 + lane % 4, product(sums.odd[i / 2]));
    }
  }
}

// A warp's part of C, as GemmArgs::epilogue says; `row` is this lane's first row, `col` the warp's first
// column.
template <class Sums>
__device__ void store(const GemmArgs& p, const Sums& sums, int lane, int row, int col) {
  if (p.epilogue == GemmEpilogue::kSwiglu) return store_swiglu(p, sums, lane, row, col);
  constexpr int kRows = 2 * Sums::kMmaM;
#pragma unroll
  for (int j = 0; j < Sums::kGroups; ++j) {
    store_f32<4, kRows>(p, row, col + 16 * j + lane % 4 * 4,
                        [&](int i, int e) { return sums.group[i / 2][j][e / 2][i % 2 * 2 + e % 2]; });
  }
  if constexpr (Sums::kOdd) {
    store_f32<2, kRows>(p, row, col + 16 * Sums::kGroups + lane % 4 * 2,
                        [&](int i, int e) { return sums.odd[i / 2][i % 2 * 2 + e]; });
  }
}

}  // namespace minfer::cu
