// The products of up to four pieces (16 rows x 64 columns, quant_tiles.h) of a warp with activations: types
// of 32-value blocks. The scheme is tile_products.h's: weights are f16 subnormals and B's columns the
// groups of 32 of one sequence ("narrow"), or up to eight sequences ("wide"); piece p is the groups 2p and
// 2p + 1, whose sums meet in running sum p. Unsigned weights leave an offset (8, 16, 128) to take off by
// the block's sum of x.
//
// LOP3s for two weights: q4_0, q4_1 one and a quarter; q5_0 two and a half; q8_0 one (a byte permutation
// for every other pair).
#pragma once

#include "cuda/device/tile_products.h"
#include "gguf/blocks.h"

namespace minfer::cu {

// Of a lane, the A operands of one piece: even[j] and odd[j] are rows g and g + 8 of the quarter's columns
// 4j .. 4j + 3, in the order of mma's registers. kOffset is what a weight has too much.
template <gguf::TensorType kType>
struct PieceFragments;

struct NibbleFragments {
  static constexpr float kOddUnitOfType = kOddUnit;
  uint32_t even[2][4], odd[2][4];
  __device__ explicit NibbleFragments(uint4 w) {
    const uint4 h = make_uint4(w.x >> 8, w.y >> 8, w.z >> 8, w.w >> 8);
    set(even, w, h, kEven);
    set(odd, w, h, kOdd);
  }
  __device__ static void set(uint32_t (&a)[2][4], uint4 w, uint4 h, uint32_t mask) {
    a[0][0] = w.x & mask, a[0][1] = w.z & mask, a[0][2] = h.x & mask, a[0][3] = h.z & mask;
    a[1][0] = w.y & mask, a[1][1] = w.w & mask, a[1][2] = h.y & mask, a[1][3] = h.w & mask;
  }
};

template <>
struct PieceFragments<gguf::TensorType::kQ4_0> : NibbleFragments {
  using Layout = Q4_0Piece;
  static constexpr float kOffset = 8;
  __device__ PieceFragments(const uint8_t* piece, int lane)
      : NibbleFragments(tile_word<uint4>(piece, lane * 16)) {}
};

template <>
struct PieceFragments<gguf::TensorType::kQ4_1> : NibbleFragments {
  using Layout = Q4_1Piece;
  static constexpr float kOffset = 0;  // it has minimums
  __device__ PieceFragments(const uint8_t* piece, int lane)
      : NibbleFragments(tile_word<uint4>(piece, lane * 16)) {}
};

template <>
struct PieceFragments<gguf::TensorType::kQ5_0> : NibbleFragments {
  using Layout = Q5_0Piece;
  static constexpr float kOffset = 16;
  __device__ PieceFragments(const uint8_t* piece, int lane)
      : NibbleFragments(tile_word<uint4>(piece, lane * 16)) {
    constexpr uint32_t kFifth = 0x00100010u, kOddFifth = 0x01000100u;
    const auto high = tile_word<uint32_t>(piece, 512 + lane * 4);
#pragma unroll
    for (int j = 0; j < 2; ++j) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {  // the lower and the higher two of four columns
        const uint32_t same = __funnelshift_r(high, high, j + 2 * i),
                       other = __funnelshift_r(high, high, j + 2 * i + 8);
        even[j][2 * i] |= same & kFifth, even[j][2 * i + 1] |= other & kFifth;
        odd[j][2 * i] |= other & kOddFifth, odd[j][2 * i + 1] |= same & kOddFifth;
      }
    }
  }
};

template <>
struct PieceFragments<gguf::TensorType::kQ8_0> {
  using Layout = Q8_0Piece;
  static constexpr float kOffset = 128, kOddUnitOfType = kEvenUnit;
  uint32_t even[2][4], odd[2][4];
  __device__ PieceFragments(const uint8_t* piece, int lane) {
    set(even, tile_word<uint4>(piece, lane * 16));
    set(odd, tile_word<uint4>(piece, 512 + lane * 16));
  }
  __device__ static void set(uint32_t (&a)[2][4], uint4 w) {
    const uint32_t words[2][2] = {{w.x, w.z}, {w.y, w.w}};
#pragma unroll
    for (int j = 0; j < 2; ++j) {
#pragma unroll
      for (int row = 0; row < 2; ++row) {
        a[j][row] = words[j][row] & 0x00ff00ffu;
        a[j][2 + row] = __byte_perm(words[j][row], 0, 0x4341);  // bytes 1 and 3
      }
    }
  }
};

template <gguf::TensorType kType>
struct BlockProducts {
  using Fragments = PieceFragments<kType>;
  using Layout = typename Fragments::Layout;
  static constexpr bool kHasMin = kType == gguf::TensorType::kQ4_1;
  static constexpr int kPieceBytes = Layout::kBytes;
  static constexpr int kTileBytes = kTilePieces * kPieceBytes;
  static constexpr float kOddBlockUnit = Fragments::kOddUnitOfType;

  // Of a piece, for rows g (even, odd) and g + 8 (even, odd): scale / unit, and the minimum where there is
  // one.
  struct Scales {
    float scale[4], min[4];
    __device__ Scales(const uint8_t* piece, int lane) {
      if constexpr (kHasMin) {
        const auto s = tile_word<uint4>(piece, Layout::kScales + lane / 4 * 16);
        set(scale, make_uint2(s.x, s.y), kEvenUnit, kOddBlockUnit);
        set(min, make_uint2(s.z, s.w), 1, 1);
      } else {
        set(scale, tile_word<uint2>(piece, Layout::kScales + lane / 4 * 8), kEvenUnit, kOddBlockUnit);
      }
    }
    __device__ static void set(float (&to)[4], uint2 s, float even_unit, float odd_unit) {
      const uint32_t words[2] = {s.x, s.y};
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const float2 v = __half22float2(*reinterpret_cast<const half2*>(&words[r]));
        to[2 * r] = v.x * even_unit, to[2 * r + 1] = v.y * odd_unit;
      }
    }
    // j: as in `scale`. `products` in their units, `of_x` plain.
    __device__ float add(float sum, int j, float products, float of_x) const {
      if constexpr (kHasMin) return fmaf(min[j], of_x, fmaf(scale[j], products, sum));
      return fmaf(scale[j],
                  fmaf(-Fragments::kOffset / (j % 2 == 0 ? kEvenUnit : kOddBlockUnit), of_x, products), sum);
    }
  };

  __device__ static void multiply(const uint8_t* piece, int lane, uint4 xe, uint4 xo, Products& even,
                                  Products& odd) {
    const Fragments a(piece, lane);
    even.add(a.even[0], xe.x, xe.y);
    odd.add(a.odd[0], xo.x, xo.y);
    even.add(a.even[1], xe.z, xe.w);
    odd.add(a.odd[1], xo.z, xo.w);
  }

  // Narrow: this lane's 8 activations, of column 32g + 8q on; 0 past the last piece.
  __device__ static uint4 load_x(const half* x, int lane, int n_pieces) {
    return lane < 8 * n_pieces ? *reinterpret_cast<const uint4*>(x + lane * 8) : make_uint4(0, 0, 0, 0);
  }

  __device__ static void multiply_narrow(const uint8_t* tile, uint4 x, int lane, int n_pieces,
                                         TileSums<false>& sums) {
    float mine[4];
#pragma unroll
    for (int p = 0; p < kTilePieces; ++p) {
      if (p >= n_pieces) break;
      Products even, odd;
      multiply(tile + p * kPieceBytes, lane, x, x, even, odd);
      const bool keep = p == 0 || (lane & 3) == p;  // columns 2p and 2p + 1
      if (keep) mine[0] = even.c[0], mine[1] = odd.c[1], mine[2] = even.c[2], mine[3] = odd.c[3];
    }
    Products of_x;
    add_ones(of_x, x.x, x.y);
    add_ones(of_x, x.z, x.w);
    if ((lane & 3) >= n_pieces) return;
    const Scales scales(tile + (lane & 3) * kPieceBytes, lane);
#pragma unroll
    for (int j = 0; j < 4; ++j) sums.v[j / 2] = scales.add(sums.v[j / 2], j, mine[j], of_x.c[j % 2]);
  }

  // `x`: the row of sequence g, at this tile's first column.
  __device__ static void multiply_wide(const uint8_t* tile, const half* x, int lane, int n_pieces,
                                       TileSums<true>& sums) {
#pragma unroll
    for (int p = 0; p < kTilePieces; ++p) {
      if (p >= n_pieces) break;
      const uint8_t* piece = tile + p * kPieceBytes;
      const uint4 xe = *reinterpret_cast<const uint4*>(x + 64 * p + lane % 4 * 8);
      const uint4 xo = *reinterpret_cast<const uint4*>(x + 64 * p + 32 + lane % 4 * 8);
      Products of_x[2], of_w[2];
      add_ones(of_x[0], xe.x, xe.y);
      add_ones(of_x[1], xo.x, xo.y);
      add_ones(of_x[0], xe.z, xe.w);
      add_ones(of_x[1], xo.z, xo.w);
      multiply(piece, lane, xe, xo, of_w[0], of_w[1]);
      const Scales scales(piece, lane);
#pragma unroll
      for (int j = 0; j < 4; ++j) {
#pragma unroll
        for (int n = 0; n < 2; ++n) {
          float& sum = sums.v[4 * p + j / 2 * 2 + n];
          sum = scales.add(sum, j, of_w[j % 2].c[j / 2 * 2 + n], of_x[j % 2].c[n]);
        }
      }
    }
  }
};

}  // namespace minfer::cu
