// The file's blocks into the layout that decode reads.
//
// Plain types: a row is copied whole. A block of 128 threads copies 2-byte words (every block size is even,
// so a row
//   of the file starts at an even address), neighbours in neighbouring lanes.
// q4_K: one thread a (row, block, P, q): 8 bytes of nibbles, and with P = 0 three bytes of scales and one of
// d, dmin. 32-value types: one thread a (row, 64 columns, q). q6_K: one thread a (row, block, i, q): three
// words, and with i = 0 four scales, with i = q = 0 also d. Bytes: each is read once and written once; the
// writes of a warp are 8-byte pieces 32 bytes apart, which L2 gathers.
#include "cuda/kernels/packed_matrix.h"

#include <climits>

#include "cuda/device/quant_tiles.h"
#include "cuda/runtime/align.h"
#include "cuda/runtime/check.h"
#include "gguf/block_layouts.h"

namespace minfer::cu {
namespace {

using gguf::BlockQ4_0;
using gguf::BlockQ4_1;
using gguf::BlockQ4_K;
using gguf::BlockQ5_0;
using gguf::BlockQ6_K;
using gguf::BlockQ8_0;
using gguf::TensorType;

constexpr int kThreads = 128;

__host__ __device__ int reordered(const RowOrder& order, int row) {
  if (order.head_dim == 0) return row;
  const int i = row % order.head_dim, half_rot = order.n_rot / 2;
  if (i >= 2 * half_rot) return row;
  return row - i + (i < half_rot ? 2 * i : 2 * (i - half_rot) + 1);
}

// One block of threads a row.
__global__ void __launch_bounds__(kThreads)
    copy_rows_kernel(const uint16_t* __restrict__ in,  // [n_rows, row_words]
                     uint16_t* __restrict__ out, int64_t row_words, int first_row, RowOrder order) {
  const uint16_t* from = in + blockIdx.x * row_words;
  uint16_t* to = out + reordered(order, first_row + static_cast<int>(blockIdx.x)) * row_words;
  for (int64_t i = threadIdx.x; i < row_words; i += kThreads) to[i] = from[i];
}

// Row of the file (counted from `first_row`), block of the row and piece (0 .. 15) of the block that a thread
// packs.
struct Piece {
  int row, block, i, q;
};
__device__ Piece piece_of_thread(int n_blocks) {
  const int64_t n = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const int64_t block = n / 16;
  const int piece = static_cast<int>(n % 16);
  return {static_cast<int>(block / n_blocks), static_cast<int>(block % n_blocks), piece / 4, piece % 4};
}

__device__ void pack_q4_piece(const BlockQ4_K& b, uint8_t* tile, int row, int p, int q) {
  const uint8_t* qs = b.qs + 32 * p + 8 * q;
#pragma unroll
  for (int j = 0; j < 2; ++j) {  // bytes e, e+2, e+1, e+3: see quant_tiles.h
    const uint32_t e =
        *reinterpret_cast<const uint32_t*>(qs + 4 * j);  // blocks are 144 bytes, qs starts at 16
    *reinterpret_cast<uint32_t*>(tile + Q4Tile::word(p, row, q, j)) = __byte_perm(e, 0, 0x3120);
  }
  if (p != 0) return;
  uint32_t bits = 0;
#pragma unroll
  for (int j = 0; j < 2; ++j) {
    const int s = 2 * q + j, t = s % 4;
    const uint32_t low = s < 4 ? b.scales[t] & 63 : (b.scales[8 + t] & 15) | b.scales[t] >> 6 << 4;
    const uint32_t min = s < 4 ? b.scales[4 + t] & 63 : b.scales[8 + t] >> 4 | b.scales[4 + t] >> 6 << 4;
    bits |= low << (6 * j) | min << (12 + 6 * j);
  }
#pragma unroll
  for (int j = 0; j < 3; ++j) tile[Q4Tile::scales(row, q) + j] = static_cast<uint8_t>(bits >> (8 * j));
  if (q < 2) {
    uint8_t* to = tile + (q == 0 ? Q4Tile::d(row) : Q4Tile::dmin(row));
    const gguf::F16Bits from = q == 0 ? b.d : b.dmin;
    to[0] = from.bytes[0], to[1] = from.bytes[1];
  }
}

__device__ uint32_t q6_value(const BlockQ6_K& b, int i) {
  const int half = i / 128, quarter = i / 32 % 4, j = i % 32;
  const uint32_t low = b.ql[64 * half + 32 * (quarter % 2) + j] >> (quarter / 2 * 4) & 15;
  return low | (b.qh[32 * half + j] >> (2 * quarter) & 3u) << 4;
}

__device__ void pack_q6_piece(const BlockQ6_K& b, uint8_t* tile, int row, int i, int q) {
  uint32_t high = 0;
  for (int c = 2 * i; c < 2 * i + 2; ++c) {
    uint32_t low = 0;
    for (int odd = 0; odd < 2; ++odd) {
      for (int e = 0; e < 4; ++e) {
        const uint32_t v = q6_value(b, 32 * c + 16 * odd + 4 * q + e);
        low |= (v & 15u) << Q6Tile::low_bit(odd, e);
        high |= (v >> 4) << Q6Tile::high_bit(c, odd, e);
      }
    }
    *reinterpret_cast<uint32_t*>(tile + Q6Tile::low(c, row, q)) = low;
  }
  *reinterpret_cast<uint32_t*>(tile + Q6Tile::high(i, row, q)) = high;
  if (i != 0) return;
  for (int j = 0; j < 4; ++j) tile[Q6Tile::scales(row, q) + j] = static_cast<uint8_t>(b.scales[4 * q + j]);
  if (q == 0) {
    for (int j = 0; j < 2; ++j) tile[Q6Tile::d(row) + j] = b.d.bytes[j];
  }
}

// Value i of a block as the unsigned number that lies in memory.
__device__ uint32_t nibble(const uint8_t* qs, int i) {
  return qs[i % 16] >> (i / 16 * 4) & 15u;
}

__device__ void put_f16(uint8_t* to, gguf::F16Bits v) {
  to[0] = v.bytes[0], to[1] = v.bytes[1];
}

// Columns 8q .. 8q + 7 of block `odd` of a piece's row; nibbles of the even block come with those of the odd.
template <class Block>
__device__ void pack_nibbles(const Block& even, const Block& odd, uint8_t* piece, int row, int q) {
  for (int j = 0; j < 2; ++j) {
    uint32_t word = 0;
    for (int e = 4 * j; e < 4 * j + 4; ++e) {
      word |= nibble(even.qs, 8 * q + e) << Q4_0Piece::nibble_bit(0, e);
      word |= nibble(odd.qs, 8 * q + e) << Q4_0Piece::nibble_bit(1, e);
    }
    *reinterpret_cast<uint32_t*>(piece + Q4_0Piece::word(row, q, j)) = word;
  }
}

__device__ void pack_piece(const BlockQ4_0& even, const BlockQ4_0& odd, uint8_t* piece, int row, int q) {
  pack_nibbles(even, odd, piece, row, q);
}

__device__ void pack_piece(const BlockQ4_1& even, const BlockQ4_1& odd, uint8_t* piece, int row, int q) {
  pack_nibbles(even, odd, piece, row, q);
  if (q < 2) put_f16(piece + Q4_1Piece::m(row, q), (q == 0 ? even : odd).m);
}

__device__ void pack_piece(const BlockQ5_0& even, const BlockQ5_0& odd, uint8_t* piece, int row, int q) {
  pack_nibbles(even, odd, piece, row, q);
  uint32_t high = 0;  // q: columns 8q .. 8q + 7 are the bits of one byte
  for (int e = 0; e < 8; ++e) {
    high |= (even.qh[q] >> e & 1u) << Q5_0Piece::high_bit(0, row, e);
    high |= (odd.qh[q] >> e & 1u) << Q5_0Piece::high_bit(1, row, e);
  }
  const int first = row / 8;  // bytes 0 and 2, or 1 and 3
  uint8_t* to = piece + Q5_0Piece::high(row, q);
  to[first] = static_cast<uint8_t>(high >> (8 * first));
  to[first + 2] = static_cast<uint8_t>(high >> (8 * first + 16));
}

__device__ void pack_piece(const BlockQ8_0& even, const BlockQ8_0& odd, uint8_t* piece, int row, int q) {
  for (int e = 0; e < 8; ++e) {
    piece[Q8_0Piece::byte(0, row, q, e)] = static_cast<uint8_t>(even.qs[8 * q + e] ^ 0x80);
    piece[Q8_0Piece::byte(1, row, q, e)] = static_cast<uint8_t>(odd.qs[8 * q + e] ^ 0x80);
  }
}

alignas(16) __device__ const uint8_t kZeroBlock[sizeof(BlockQ6_K)] = {};  // the largest of them

// Rows [first_row, first_row + n_rows) of the file, and up to n_rows_padded zero ones after them.
template <class Tile, class Block>
__global__ void __launch_bounds__(kThreads)
    pack_tiles_kernel(const Block* __restrict__ in,  // [n_rows, n_blocks]
                      uint8_t* __restrict__ out, int first_row, int n_rows, int n_rows_padded, int n_blocks,
                      RowOrder order) {
  const Piece piece = piece_of_thread(n_blocks);
  if (piece.row >= n_rows_padded) return;
  const bool real = piece.row < n_rows;
  const Block& b =
      real ? in[int64_t{piece.row} * n_blocks + piece.block] : *reinterpret_cast<const Block*>(kZeroBlock);
  const int row = real ? reordered(order, first_row + piece.row) : first_row + piece.row;
  uint8_t* tile = out + (int64_t{row / kTileRows} * n_blocks + piece.block) * Tile::kBytes;
  if constexpr (sizeof(Block) == sizeof(BlockQ4_K)) {
    pack_q4_piece(b, tile, row % kTileRows, piece.i, piece.q);
  } else {
    pack_q6_piece(b, tile, row % kTileRows, piece.i, piece.q);
  }
}

// One thread a (row, piece, q); rows as in pack_tiles_kernel.
template <class Piece, class Block>
__global__ void __launch_bounds__(kThreads)
    pack_pieces_kernel(const Block* __restrict__ in,  // [n_rows, 2 * n_pieces]
                       uint8_t* __restrict__ out, int first_row, int n_rows, int n_rows_padded, int n_pieces,
                       RowOrder order) {
  const int64_t n = int64_t{blockIdx.x} * kThreads + threadIdx.x, at = n / 4;
  const int q = static_cast<int>(n % 4), k = static_cast<int>(at % n_pieces),
            file_row = static_cast<int>(at / n_pieces);
  if (file_row >= n_rows_padded) return;
  const bool real = file_row < n_rows;
  const Block* zero = reinterpret_cast<const Block*>(kZeroBlock);
  const Block* from = real ? in + at * 2 : zero;
  const Block &even = from[0], &odd = from[real ? 1 : 0];
  const int row = real ? reordered(order, first_row + file_row) : first_row + file_row;
  uint8_t* piece = out + (int64_t{row / kTileRows} * n_pieces + k) * Piece::kBytes;
  pack_piece(even, odd, piece, row % kTileRows, q);
  if (q < 2) put_f16(piece + Piece::d(row % kTileRows, q), (q == 0 ? even : odd).d);
}

// Rows that a call fills up the last tile with.
int padding_rows(const PackArgs& a) {
  const bool last = a.first_row + a.n_rows == a.out.n_rows;
  return last ? (kTileRows - a.out.n_rows % kTileRows) % kTileRows : 0;
}

template <class Piece, class Block>
void pack_pieces(const PackArgs& a, cudaStream_t stream) {
  const int n_pieces = a.out.n_cols / kPieceCols, n_rows_padded = a.n_rows + padding_rows(a);
  const int64_t n_grid = (int64_t{n_rows_padded} * n_pieces * 4 + kThreads - 1) / kThreads;
  MINFER_REQUIRE("pack", n_grid <= INT_MAX);
  pack_pieces_kernel<Piece><<<static_cast<unsigned>(n_grid), kThreads, 0, stream>>>(
      static_cast<const Block*>(a.file_blocks), static_cast<uint8_t*>(a.out_data), a.first_row, a.n_rows,
      n_rows_padded, n_pieces, a.order);
}

template <class Tile, class Block>
void pack_tiles(const PackArgs& a, cudaStream_t stream) {
  const int n_blocks = a.out.n_cols / kTileCols;
  const int padding = padding_rows(a);
  const int64_t n_threads = int64_t{a.n_rows + padding} * n_blocks * 16;
  const int64_t n_grid = (n_threads + kThreads - 1) / kThreads;
  MINFER_REQUIRE("pack", n_grid <= INT_MAX);
  pack_tiles_kernel<Tile><<<static_cast<unsigned>(n_grid), kThreads, 0, stream>>>(
      static_cast<const Block*>(a.file_blocks), static_cast<uint8_t*>(a.out_data), a.first_row, a.n_rows,
      a.n_rows + padding, n_blocks, a.order);
}

size_t row_bytes(TensorType type, int n_cols) {
  const gguf::TypeInfo* info = gguf::type_info(type);
  MINFER_REQUIRE("packed matrix", info != nullptr && info->supported);
  MINFER_REQUIRE("packed matrix", n_cols > 0 && n_cols % 8 == 0);
  MINFER_REQUIRE("packed matrix", n_cols % static_cast<int>(info->block_size) == 0);
  return static_cast<size_t>(n_cols) / info->block_size * info->block_bytes;
}

}  // namespace

int reordered_row(const RowOrder& order, int row) {
  return reordered(order, row);
}

bool is_tiled(TensorType type, int n_cols) {
  switch (type) {
    case TensorType::kQ4_K:
    case TensorType::kQ6_K:
      return true;
    case TensorType::kQ4_0:
    case TensorType::kQ4_1:
    case TensorType::kQ5_0:
    case TensorType::kQ8_0:
      return n_cols % kPieceCols == 0;
    default:
      return false;
  }
}

size_t packed_bytes(TensorType type, int n_rows, int n_cols) {
  MINFER_REQUIRE("packed matrix", n_rows > 0 && n_rows <= INT_MAX - kTileRows);
  const int n_rows_padded =
      is_tiled(type, n_cols) ? (n_rows + kTileRows - 1) / kTileRows * kTileRows : n_rows;
  return row_bytes(type, n_cols) * static_cast<size_t>(n_rows_padded);
}

void pack(const PackArgs& a, cudaStream_t stream) {
  const size_t n_row_bytes = row_bytes(a.out.type, a.out.n_cols);
  MINFER_REQUIRE("pack", a.file_blocks != nullptr && a.out_data != nullptr && a.out.data == a.out_data);
  MINFER_REQUIRE("pack", a.first_row >= 0 && a.n_rows > 0 && a.n_rows <= a.out.n_rows - a.first_row);
  MINFER_REQUIRE("pack", aligned16(a.file_blocks, a.out_data));
  const RowOrder& o = a.order;
  MINFER_REQUIRE("pack", o.head_dim >= 0 && o.n_rot >= 0 && o.n_rot % 2 == 0 && o.n_rot <= o.head_dim);
  MINFER_REQUIRE("pack", o.head_dim == 0 || a.out.n_rows % o.head_dim == 0);
  const TensorType tiled = is_tiled(a.out.type, a.out.n_cols) ? a.out.type : TensorType::kF32;
  if (tiled == TensorType::kQ4_K) {
    pack_tiles<Q4Tile, BlockQ4_K>(a, stream);
  } else if (tiled == TensorType::kQ6_K) {
    pack_tiles<Q6Tile, BlockQ6_K>(a, stream);
  } else if (tiled == TensorType::kQ4_0) {
    pack_pieces<Q4_0Piece, BlockQ4_0>(a, stream);
  } else if (tiled == TensorType::kQ4_1) {
    pack_pieces<Q4_1Piece, BlockQ4_1>(a, stream);
  } else if (tiled == TensorType::kQ5_0) {
    pack_pieces<Q5_0Piece, BlockQ5_0>(a, stream);
  } else if (tiled == TensorType::kQ8_0) {
    pack_pieces<Q8_0Piece, BlockQ8_0>(a, stream);
  } else {
    copy_rows_kernel<<<static_cast<unsigned>(a.n_rows), kThreads, 0, stream>>>(
        static_cast<const uint16_t*>(a.file_blocks), static_cast<uint16_t*>(a.out_data),
        static_cast<int64_t>(n_row_bytes / 2), a.first_row, o);
  }
  check_launch("pack");
}

}  // namespace minfer::cu
