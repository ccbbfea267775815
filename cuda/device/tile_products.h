// The products of one 16 x 256 tile (quant_tiles.h) of a warp with activations, on tensor cores: weights are
// the A operand of mma.m16n8k16, as f16 subnormals q * 2^-24 (or 16 times that), which needs one LOP3 for two
// weights and is exact; the sums of a sub-block come out in f32 and are scaled there.
//
// B's eight columns are
//   - of one sequence ("narrow"): the eight groups of 32 columns of x. The product of a sub-block's weights
//     with all eight is right in its own column alone; the lane quarter that holds that column keeps it. So
//     after a tile lane (g, q) has the sums of rows g and g + 8 for the groups 2q and 2q + 1: those whose
//     scales it loaded.
//   - of up to eight ("wide"): the sequences; every lane needs the scales of all groups, which come by
//     shuffle from the lane that loaded them.
// Either way a sub-block's sum starts at zero and takes the same products in the same order, and those of the
// groups (2p, 2p + 1) meet in one running sum p, the four of which are added as (0 + 1) + (2 + 3): the bits
// do not depend on the number of sequences.
//
// The sums of x over a sub-block (for minimums, and for the 32 that q6_K takes off) are a product with ones,
// in the same column layout.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "cuda/device/mma.h"
#include "cuda/device/quant_tiles.h"
#include "cuda/device/reduce.h"

namespace minfer::cu {

constexpr uint32_t kEven = 0x000f000fu, kOdd = 0x00f000f0u;          // nibbles of a low word: q and 16 q
constexpr uint32_t kEvenHigh = 0x00300030u, kOddHigh = 0x03000300u;  // where q6_K's high pairs join them
constexpr float kEvenUnit = 0x1p24f, kOddUnit = 0x1p20f;             // 1 / (the f16 that stands for q = 1)

// Running sums: narrow [row g, row g + 8]; wide [p][(g, 2q), (g, 2q + 1), (g + 8, 2q), (g + 8, 2q + 1)].
template <bool kWide>
struct TileSums {
  static constexpr int kSize = kWide ? 16 : 2;
  float v[kSize];
  __device__ void clear() {
#pragma unroll
    for (int i = 0; i < kSize; ++i) v[i] = 0;
  }
};

struct Products {
  float c[4] = {0, 0, 0, 0};
  __device__ void add(const uint32_t (&a)[4], uint32_t b0, uint32_t b1) { mma_m16n8k16(c, a, b0, b1); }
};

template <class T>
__device__ __forceinline__ T tile_word(const uint8_t* tile, int at) {
  return *reinterpret_cast<const T*>(tile + at);
}

// Sums of x over the columns that b0, b1 hold.
__device__ __forceinline__ void add_ones(Products& p, uint32_t b0, uint32_t b1) {
  constexpr uint32_t kOnes = 0x3c003c00u;
  const uint32_t ones[4] = {kOnes, kOnes, kOnes, kOnes};
  p.add(ones, b0, b1);
}

// The numbers 0 .. 255 as f32, by way of the mantissa of 2^23.
__device__ __forceinline__ float small_float(uint32_t v) {
  return __uint_as_float(0x4b000000u | v) - 0x1p23f;
}

// A value of lane quarter q = p of this lane's own group of four.
__device__ __forceinline__ float from_quarter(float v, int p) {
  return __shfl_sync(0xffffffffu, v, p, 4);
}

// `tile` is the tile's bytes, in shared memory. n_pieces: how many 64 columns the tile has, here always four
// (block_products.h has shorter ones).
struct Q4Products {
  static constexpr int kTileBytes = Q4Tile::kBytes;

  // Narrow: this lane's 8 activations, of column 32g + 8q on.
  __device__ static uint4 load_x(const half* x, int lane, int) {
    return *reinterpret_cast<const uint4*>(x + lane * 8);
  }

  // d * scale / unit of rows g (even, odd), g + 8 (even, odd), and -dmin * min of the same.
  __device__ static void scales(uint2 s, int lane, float (&scale)[4], float (&min)[4]) {
    const uint32_t mine = s.y >> 16;
    const uint32_t beside = __shfl_xor_sync(0xffffffffu, mine, 1);
    const uint32_t own_row = __byte_perm(mine, beside, lane & 1 ? 0x1054 : 0x5410);  // d low, dmin high
    const uint32_t other_row = __shfl_xor_sync(0xffffffffu, own_row, 2);
    const uint32_t d_of[2] = {lane & 2 ? other_row : own_row, lane & 2 ? own_row : other_row};
    const uint32_t bits_of[2] = {s.x, __funnelshift_r(s.x, s.y, 24)};
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float2 d = __half22float2(*reinterpret_cast<const half2*>(&d_of[r]));
      const uint32_t bits = bits_of[r];
      scale[2 * r] = small_float(bits & 63u) * (d.x * kEvenUnit);
      scale[2 * r + 1] = small_float(bits >> 6 & 63u) * (d.x * kOddUnit);
      min[2 * r] = small_float(bits >> 12 & 63u) * -d.y;
      min[2 * r + 1] = small_float(bits >> 18 & 63u) * -d.y;
    }
  }

  // Group p's two sub-blocks times x: even.c, odd.c. `xe`, `xo`: 8 activations of each.
  __device__ static void multiply(uint4 w, uint4 xe, uint4 xo, Products& even, Products& odd) {
    const uint4 h = make_uint4(w.x >> 8, w.y >> 8, w.z >> 8, w.w >> 8);
    even.add({w.x & kEven, w.z & kEven, h.x & kEven, h.z & kEven}, xe.x, xe.y);
    even.add({w.y & kEven, w.w & kEven, h.y & kEven, h.w & kEven}, xe.z, xe.w);
    odd.add({w.x & kOdd, w.z & kOdd, h.x & kOdd, h.z & kOdd}, xo.x, xo.y);
    odd.add({w.y & kOdd, w.w & kOdd, h.y & kOdd, h.w & kOdd}, xo.z, xo.w);
  }

  __device__ static void multiply_narrow(const uint8_t* tile, uint4 x, int lane, int n_pieces,
                                         TileSums<false>& sums) {
    float mine[4];
#pragma unroll
    for (int p = 0; p < 4; ++p) {
      if (p == 2 && p >= n_pieces) break;  // never; else the compiler holds all quarters in registers at once
      Products even, odd;
      multiply(tile_word<uint4>(tile, p * 512 + lane * 16), x, x, even, odd);
      const bool keep = p == 0 || (lane & 3) == p;  // columns 2p and 2p + 1
      if (keep) mine[0] = even.c[0], mine[1] = odd.c[1], mine[2] = even.c[2], mine[3] = odd.c[3];
    }
    float scale[4], min[4];
    scales(tile_word<uint2>(tile, Q4Tile::kScales + lane * 8), lane, scale, min);
    Products of_x;
    add_ones(of_x, x.x, x.y);
    add_ones(of_x, x.z, x.w);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      sums.v[j / 2] = fmaf(scale[j], mine[j], sums.v[j / 2]);
      sums.v[j / 2] = fmaf(min[j], of_x.c[j % 2], sums.v[j / 2]);
    }
  }

  // `x`: the row of sequence g, at this tile's first column.
  __device__ static void multiply_wide(const uint8_t* tile, const half* x, int lane, int,
                                       TileSums<true>& sums) {
    float scale[4], min[4];
    scales(tile_word<uint2>(tile, Q4Tile::kScales + lane * 8), lane, scale, min);
#pragma unroll
    for (int p = 0; p < 4; ++p) {
      const uint4 xe = *reinterpret_cast<const uint4*>(x + 64 * p + lane % 4 * 8);
      const uint4 xo = *reinterpret_cast<const uint4*>(x + 64 * p + 32 + lane % 4 * 8);
      Products of_x[2], of_w[2];
      add_ones(of_x[0], xe.x, xe.y);
      add_ones(of_x[0], xe.z, xe.w);
      add_ones(of_x[1], xo.x, xo.y);
      add_ones(of_x[1], xo.z, xo.w);
      multiply(tile_word<uint4>(tile, p * 512 + lane * 16), xe, xo, of_w[0], of_w[1]);
#pragma unroll
      for (int j = 0; j < 4; ++j) {  // row g even, odd; row g + 8 even, odd
        const float a = from_quarter(scale[j], p), b = from_quarter(min[j], p);
#pragma unroll
        for (int n = 0; n < 2; ++n) {
          float& sum = sums.v[4 * p + j / 2 * 2 + n];
          sum = fmaf(a, of_w[j % 2].c[j / 2 * 2 + n], sum);
          sum = fmaf(b, of_x[j % 2].c[n], sum);
        }
      }
    }
  }
};

struct Q6Products {
  static constexpr int kTileBytes = Q6Tile::kBytes;

  // Narrow: this lane's activations, 4 of column 32g + 4q on and 4 of column 32g + 16 + 4q on.
  __device__ static uint4 load_x(const half* x, int lane, int) {
    const half* from = x + lane / 4 * 32 + lane % 4 * 4;
    const uint2 even = *reinterpret_cast<const uint2*>(from),
                odd = *reinterpret_cast<const uint2*>(from + 16);
    return make_uint4(even.x, even.y, odd.x, odd.y);
  }

  // d * scale / unit of sub-blocks 4q .. 4q + 3 of row g, then of row g + 8.
  __device__ static void scales(const uint8_t* tile, int lane, float (&scale)[8]) {
    const uint2 s = tile_word<uint2>(tile, Q6Tile::kScales + lane * 8);
    const auto d = tile_word<uint32_t>(tile, Q6Tile::kD + lane / 4 * 4);
    const float2 d_of = __half22float2(*reinterpret_cast<const half2*>(&d));
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float row_d = r == 0 ? d_of.x : d_of.y;
      const uint32_t bits = (r == 0 ? s.x : s.y) ^ 0x80808080u;  // -128 .. 127 as 0 .. 255
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const float v = __uint_as_float(__byte_perm(bits, 0x4b000000u, 0x7540u + j)) - (0x1p23f + 128.0f);
        scale[4 * r + j] = v * (row_d * (j % 2 == 0 ? kEvenUnit : kOddUnit));
      }
    }
  }

  // The two sub-blocks of 16 of a group of 32: wg, w8 are low words and hg, h8 high words of rows g and g
  // + 8.
  __device__ static void multiply(uint32_t wg, uint32_t w8, uint32_t hg, uint32_t h8, uint2 xe, uint2 xo,
                                  Products& even, Products& odd) {
    const uint32_t wg2 = wg >> 8, w82 = w8 >> 8, hg2 = hg >> 2, h82 = h8 >> 2;
    even.add({(wg & kEven) | (hg & kEvenHigh), (w8 & kEven) | (h8 & kEvenHigh),
              (wg2 & kEven) | (hg2 & kEvenHigh), (w82 & kEven) | (h82 & kEvenHigh)},
             xe.x, xe.y);
    odd.add({(wg & kOdd) | (hg & kOddHigh), (w8 & kOdd) | (h8 & kOddHigh), (wg2 & kOdd) | (hg2 & kOddHigh),
             (w82 & kOdd) | (h82 & kOddHigh)},
            xo.x, xo.y);
  }

  // sum += scale * (products - 32 * sum of x), in the units of the products.
  __device__ static float add_scaled(float sum, float scale, float products, float of_x, int odd) {
    return fmaf(scale, fmaf(odd == 0 ? -32 / kEvenUnit : -32 / kOddUnit, of_x, products), sum);
  }

  __device__ static uint32_t rotated(uint32_t high) {
    return __funnelshift_r(high, high, 8);
  }

  __device__ static void multiply_narrow(const uint8_t* tile, uint4 x, int lane, int n_pieces,
                                         TileSums<false>& sums) {
    float mine[8];
    const uint2 xe = make_uint2(x.x, x.y), xo = make_uint2(x.z, x.w);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (i >= n_pieces) break;  // never, as above
      const auto now = tile_word<uint4>(tile, i * 512 + lane * 16);
      const auto high = tile_word<uint2>(tile, Q6Tile::kHigh + i / 2 * 512 + lane * 16 + i % 2 * 8);
      const uint32_t hg = high.x, h8 = high.y;
      Products c0[2], c1[2];
      multiply(now.x, now.y, hg, h8, xe, xo, c0[0], c0[1]);
      multiply(now.z, now.w, rotated(hg), rotated(h8), xe, xo, c1[0], c1[1]);
      const bool keep = i == 0 || (lane & 3) == i;  // columns 2i and 2i + 1
      if (keep) {
        mine[0] = c0[0].c[0], mine[1] = c0[1].c[0], mine[2] = c1[0].c[1], mine[3] = c1[1].c[1];
        mine[4] = c0[0].c[2], mine[5] = c0[1].c[2], mine[6] = c1[0].c[3], mine[7] = c1[1].c[3];
      }
    }
    float scale[8];
    scales(tile, lane, scale);
    Products of_x[2];
    add_ones(of_x[0], xe.x, xe.y);
    add_ones(of_x[1], xo.x, xo.y);
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      sums.v[j / 4] = add_scaled(sums.v[j / 4], scale[j], mine[j], of_x[j % 2].c[j % 4 / 2], j % 2);
    }
  }

  __device__ static void multiply_wide(const uint8_t* tile, const half* x, int lane, int,
                                       TileSums<true>& sums) {
    float scale[8];
    scales(tile, lane, scale);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const auto now = tile_word<uint4>(tile, i * 512 + lane * 16);
      const auto high = tile_word<uint2>(tile, Q6Tile::kHigh + i / 2 * 512 + lane * 16 + i % 2 * 8);
      const uint32_t hg = high.x, h8 = high.y;
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        const half* from = x + 64 * i + 32 * c + lane % 4 * 4;
        const uint2 xe = *reinterpret_cast<const uint2*>(from),
                    xo = *reinterpret_cast<const uint2*>(from + 16);
        Products of_x[2], of_w[2];
        add_ones(of_x[0], xe.x, xe.y);
        add_ones(of_x[1], xo.x, xo.y);
        multiply(c == 0 ? now.x : now.z, c == 0 ? now.y : now.w, c == 0 ? hg : rotated(hg),
                 c == 0 ? h8 : rotated(h8), xe, xo, of_w[0], of_w[1]);
#pragma unroll
        for (int j = 0; j < 4; ++j) {  // row g even, odd; row g + 8 even, odd
          const float a = from_quarter(scale[j / 2 * 4 + 2 * c + j % 2], i);
#pragma unroll
          for (int n = 0; n < 2; ++n) {
            float& sum = sums.v[4 * i + j / 2 * 2 + n];
            sum = add_scaled(sum, a, of_w[j % 2].c[j / 2 * 2 + n], of_x[j % 2].c[n], j % 2);
          }
        }
      }
    }
  }
};

}  // namespace minfer::cu
