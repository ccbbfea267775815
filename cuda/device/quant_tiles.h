// How q4_K and q6_K matrices lie in device memory: in tiles of 16 rows x 256 columns, so that a lane of a
// warp finds its part of an mma.m16n8k16 A fragment (rows g and g + 8 of the tile, g = lane / 4) in whole
// 16-byte words. The bits are the file's, in another order; the size is the file's, rows rounded up to 16.
// Tile (R, K) is number R * n_cols / 256 + K. Every byte belongs to one row, so rows can be packed one by
// one, in any order.
//
// Lane quarter q = lane % 4 owns, in each sub-block of 32 (16 for q6_K), the 8 (4) consecutive columns from
// 8q (4q) on: what one 16-byte (8-byte) read of an activation row gives. Pairs of columns (e, e+1) stand 16
// bits apart, as the halves of a register do:
//   q4_K word (P, row, j), for the sub-blocks 2P ("even") and 2P + 1 ("odd"), columns e = 4j .. 4j + 3 of the
//   quarter bit   28 odd e+3 | 24 even e+3 | 20 odd e+1 | 16 even e+1 | 12 odd e+2 | 8 even e+2 | 4 odd e | 0
//   even e q6_K low nibbles, word (c, row), for the sub-blocks 2c and 2c + 1: the same with e = 0 q6_K high
//   pairs, word (i, row), for c = 2i and 2i + 1: the pair of even e (odd e) of c = 2i stands at bit 4 (8), 2
//   bits further for e+2, 16 for e+1; those of c = 2i + 1 stand as many bits higher as makes 8, round the
//   word.
// So `w & 0x000f000f` is two weights of an even sub-block as f16 subnormals, exactly q * 2^-24; the mask
// 0x00f000f0 gives 16 times those of the odd one; and an 11th bit is where an f16 stops being linear in its
// bits.
#pragma once

#include <cstdint>

#if defined(__CUDACC__)
#define MINFER_HOST_DEVICE __host__ __device__
#else
#define MINFER_HOST_DEVICE
#endif

namespace minfer::cu {

inline constexpr int kTileRows = 16;
inline constexpr int kTileCols = 256;

// q4_K: 4 x 512 bytes of weights, then 8 bytes a lane: 3 bytes for row g (scales of sub-blocks 2q, 2q + 1,
// then their minimums, 6 bits each, the first lowest), 3 bytes for row g + 8, and for q = 0, 1, 2, 3 the f16
// d of row g, dmin of row g, d of row g + 8, dmin of row g + 8.
struct Q4Tile {
  static constexpr int kBytes = 2304;
  static constexpr int kScales = 2048;
  MINFER_HOST_DEVICE static int word(int p, int row, int q, int j) {
    return p * 512 + ((row % 8) * 4 + q) * 16 + row / 8 * 8 + j * 4;
  }
  MINFER_HOST_DEVICE static int scales(int row, int q) {
    return kScales + ((row % 8) * 4 + q) * 8 + row / 8 * 3;
  }
  MINFER_HOST_DEVICE static int d(int row) { return kScales + (row % 8) * 32 + row / 8 * 16 + 6; }
  MINFER_HOST_DEVICE static int dmin(int row) { return d(row) + 8; }
};
static_assert(Q4Tile::kBytes == kTileRows * 144);

// q6_K: 4 x 512 bytes of low nibbles, 2 x 512 of high pairs, 8 bytes a lane of scales (of the sub-blocks 4q
// .. 4q + 3 of row g, then of row g + 8), and 4 bytes for each g: the f16 d of rows g and g + 8.
struct Q6Tile {
  static constexpr int kBytes = 3360;
  static constexpr int kHigh = 2048, kScales = 3072, kD = 3328;
  MINFER_HOST_DEVICE static int low(int c, int row, int q) {
    return c / 2 * 512 + ((row % 8) * 4 + q) * 16 + c % 2 * 8 + row / 8 * 4;
  }
  MINFER_HOST_DEVICE static int high(int i, int row, int q) {
    return kHigh + i / 2 * 512 + ((row % 8) * 4 + q) * 16 + i % 2 * 8 + row / 8 * 4;
  }
  MINFER_HOST_DEVICE static int scales(int row, int q) {
    return kScales + ((row % 8) * 4 + q) * 8 + row / 8 * 4;
  }
  MINFER_HOST_DEVICE static int d(int row) { return kD + row % 8 * 4 + row / 8 * 2; }
  // Where column e (0 .. 3) of the quarter stands, of the even (0) or odd (1) sub-block.
  MINFER_HOST_DEVICE static int low_bit(int odd, int e) { return e % 2 * 16 + e / 2 * 8 + odd * 4; }
  MINFER_HOST_DEVICE static int high_bit(int c, int odd, int e) {
    return (e % 2 * 16 + e / 2 * 2 + 4 + odd * 4 + c % 2 * 8) % 32;
  }
};
static_assert(Q6Tile::kBytes == kTileRows * 210);

}  // namespace minfer::cu
