// How q4_K and q6_K matrices, and those of q4_0, q4_1, q5_0 and q8_0 (further down), lie in device memory.
//
// q4_K and q6_K: in tiles of 16 rows x 256 columns, so that a lane of a
// warp finds its part of an mma.m16n8k16 A fragment (rows g and g + 8 of the tile, g = lane / 4) in whole
// 16-byte words. The bits are the file's, in another order; the size is the file's, rows rounded up to 16.
// Tile (R, K) is number R * n_cols / 256 + K. Every byte belongs to one row, so rows can be packed one by
// one, in any order.
//
// Lane quarter q = lane % 4 owns, in each sub-block of 32 (16 for q6_K), the 8 (4) consecutive columns from
// 8q (4q) on: what one 16-byte (8-byte) read of an activation row gives. Pairs of columns (e, e+1) stand 16
// bits apart, as the halves of a register do:
//   q4_K word (P, row, j), for the sub-blocks 2P ("even") and 2P + 1 ("odd"), columns e = 4j .. 4j + 3 of the
//     quarter: bit 28 odd e+3 | 24 even e+3 | 20 odd e+1 | 16 even e+1 | 12 odd e+2 | 8 even e+2 | 4 odd e |
//     0 even e
//   q6_K low nibbles, word (c, row), for the sub-blocks 2c and 2c + 1: the same with e = 0
//   q6_K high pairs, word (i, row), for c = 2i and 2i + 1: the pair of even e (odd e) of c = 2i stands at bit
//     4 (8), 2 bits further for e+2, 16 for e+1; those of c = 2i + 1 stand as many bits higher as makes 8,
//     round the word
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

// Types of 32-value blocks, where n_cols is a multiple of 64 (SmolLM2's 576 and Qwen2.5-0.5B's 896 are none
// of 256): in pieces of 16 rows x 64 columns, two blocks ("even", "odd") of each row. Piece (R, K) is number
// R * n_cols / 64 + K. Lane quarter q owns the 8 columns from 8q on of either block. 4 consecutive pieces are
// what a q4_K tile is: 256 columns.
//   nibbles (not q8_0): 512 bytes, words as those of q4_K: bit e % 2 * 16 + e % 4 / 2 * 8 + odd * 4 of word
//     e / 4
//   fifth bits (q5_0): 128 bytes, a word a lane: rows g (bytes 0, 2) and g + 8 (bytes 1, 3)
//   bytes (q8_0): 512 of even blocks, then of odd ones: q + 128, in each word e, e + 2, e + 1, e + 3
//   scales: for each g, f16 d of (g, even), (g, odd), (g + 8, even), (g + 8, odd); q4_1: then m
inline constexpr int kPieceCols = 64;
inline constexpr int kTilePieces = kTileCols / kPieceCols;

template <int kWeightBytes, int kRowScaleBytes>
struct Piece {
  static constexpr int kBytes = kWeightBytes + 8 * kRowScaleBytes;
  static constexpr int kScales = kWeightBytes;
  MINFER_HOST_DEVICE static int word(int row, int q, int j) {
    return ((row % 8) * 4 + q) * 16 + row / 8 * 8 + j * 4;
  }
  MINFER_HOST_DEVICE static int nibble_bit(int odd, int e) { return e % 2 * 16 + e % 4 / 2 * 8 + odd * 4; }
  MINFER_HOST_DEVICE static int d(int row, int odd) {
    return kScales + row % 8 * kRowScaleBytes + row / 8 * 4 + odd * 2;
  }
};
struct Q4_0Piece : Piece<512, 8> {};
struct Q4_1Piece : Piece<512, 16> {
  MINFER_HOST_DEVICE static int m(int row, int odd) { return d(row, odd) + 8; }
};
struct Q5_0Piece : Piece<512 + 128, 8> {
  MINFER_HOST_DEVICE static int high(int row, int q) { return 512 + ((row % 8) * 4 + q) * 4; }
  // Turned right by c (+ 8 where odd differs from row / 8), c = e / 4 + e % 4 / 2 * 2, it meets its nibble.
  MINFER_HOST_DEVICE static int high_bit(int odd, int row, int e) {
    return (4 + 4 * odd + e % 2 * 16 + e / 4 + e % 4 / 2 * 2 + (odd + row / 8) % 2 * 8) % 32;
  }
};
struct Q8_0Piece : Piece<1024, 8> {
  MINFER_HOST_DEVICE static int byte(int odd, int row, int q, int e) {
    return odd * 512 + word(row, q, e / 4) + e % 2 * 2 + e % 4 / 2;
  }
};
static_assert(Q4_0Piece::kBytes == kTileRows * 2 * 18 && Q4_1Piece::kBytes == kTileRows * 2 * 20);
static_assert(Q5_0Piece::kBytes == kTileRows * 2 * 22 && Q8_0Piece::kBytes == kTileRows * 2 * 34);

}  // namespace minfer::cu
