// The stream of tiles that each warp of gemv_tiles.cu asks for: which, from where, into which slot of its
// ring.
#pragma once

#include "cuda/device/block_products.h"
#include "cuda/device/cp_async.h"
#include "cuda/device/tile_products.h"
#include "cuda/kernels/gemv_parts.h"

namespace minfer::cu {

struct TileMatrix {
  const uint8_t* data;
  int first_unit;  // units of this matrix are [first_unit, the next one's)
  int n_rows, first_row;
  bool is_q6;  // among q4_K and q6_K
};

struct TileArgs {
  TileMatrix w[3];
  int n_units;
  int units_a_group;  // SwiGLU: units 2i and 2i + 1 are gate and up of the same rows, and one block's
  const half* x;      // [n_tokens, n_cols]
  int n_tokens, n_cols;
  int n_k, n_slices;
  int last_pieces;  // of a row's last tile
  GemvOutput out;
};

// Unit u's matrix and 16-row tile.
struct Unit {
  int matrix, tile;
};
__device__ inline Unit unit_at(const TileArgs& a, int u) {
  if (a.units_a_group == 2) return {u % 2, u / 2};
  const int m = u >= a.w[2].first_unit ? 2 : u >= a.w[1].first_unit ? 1 : 0;
  return {m, u - a.w[m].first_unit};
}
__device__ inline int next_unit(const TileArgs& a, int u) {
  if (a.units_a_group == 1) return u + static_cast<int>(gridDim.x);
  return u % 2 == 0 ? u + 1 : u - 1 + 2 * static_cast<int>(gridDim.x);
}

// The types of a launch's matrices.
enum class Types { kQ4_K, kQ6_K, kEitherK, kQ4_0, kQ4_1, kQ5_0, kQ8_0 };

template <Types kTypes>
struct ProductsOf;
template <>
struct ProductsOf<Types::kQ4_K> : Q4Products {};
template <>
struct ProductsOf<Types::kQ6_K> : Q6Products {};
template <>
struct ProductsOf<Types::kEitherK> : Q6Products {};  // the larger tiles
template <>
struct ProductsOf<Types::kQ4_0> : BlockProducts<gguf::TensorType::kQ4_0> {};
template <>
struct ProductsOf<Types::kQ4_1> : BlockProducts<gguf::TensorType::kQ4_1> {};
template <>
struct ProductsOf<Types::kQ5_0> : BlockProducts<gguf::TensorType::kQ5_0> {};
template <>
struct ProductsOf<Types::kQ8_0> : BlockProducts<gguf::TensorType::kQ8_0> {};

constexpr bool has_pieces(Types t) {
  return t != Types::kQ4_K && t != Types::kQ6_K && t != Types::kEitherK;
}
template <Types kTypes>
__device__ int pieces_of(const TileArgs& a, int k) {
  return !has_pieces(kTypes) || k == a.n_k - 1 ? a.last_pieces : kTilePieces;
}

// Where a warp's stream of tiles is: its slices of the block's units, one after the other.
struct Cursor {
  int unit, slice, k;
  const uint8_t* row_tile;  // of the unit
  bool is_q6;
};
template <Types kTypes>
struct Stream {
  static constexpr int kSlotBytes = ProductsOf<kTypes>::kTileBytes;

  __device__ static int tile_bytes(bool is_q6) {
    return kTypes == Types::kEitherK && !is_q6 ? Q4Tile::kBytes : kSlotBytes;
  }
  __device__ static void enter(const TileArgs& a, Cursor& at, int unit, int warp) {
    at.unit = unit, at.slice = warp, at.k = warp;
    if (unit >= a.n_units) return;
    const Unit u = unit_at(a, unit);
    at.is_q6 = kTypes == Types::kEitherK && a.w[u.matrix].is_q6;
    int64_t n_row_bytes = int64_t{a.n_k} * tile_bytes(at.is_q6);
    if (has_pieces(kTypes)) n_row_bytes -= (kTilePieces - a.last_pieces) * (kSlotBytes / kTilePieces);
    at.row_tile = a.w[u.matrix].data + u.tile * n_row_bytes;
  }
  __device__ static void advance(const TileArgs& a, Cursor& at, int warp, int n_warps) {
    at.k += a.n_slices;
    if (at.k < a.n_k) return;
    at.slice += n_warps, at.k = at.slice;
    if (at.slice >= a.n_slices) enter(a, at, next_unit(a, at.unit), warp);
  }
  // Asks for the tile at the cursor, as it lies in memory; lanes take 16 bytes in turn.
  __device__ static void ask(const TileArgs& a, const Cursor& at, uint32_t slot, int lane) {
    if (at.unit < a.n_units) {
      const uint8_t* from = at.row_tile + at.k * tile_bytes(at.is_q6);
      const int n_pieces = pieces_of<kTypes>(a, at.k);
      if (has_pieces(kTypes) && n_pieces < kTilePieces) {
#pragma unroll 1
        for (int i = lane * 16; i < n_pieces * (kSlotBytes / kTilePieces); i += 512) {
          cp_async_16(slot + i, from + i);
        }
      } else if (kTypes == Types::kEitherK && !at.is_q6) {
        ask_bytes<Q4Tile::kBytes>(from + lane * 16, slot + lane * 16, lane);
      } else {
        ask_bytes<kSlotBytes>(from + lane * 16, slot + lane * 16, lane);
      }
    }
    cp_async_commit();  // an empty group past the end, so that the count of groups stays that of tiles
  }
  template <int kBytes>
  __device__ static void ask_bytes(const uint8_t* from, uint32_t to, int lane) {
#pragma unroll
    for (int i = 0; i < kBytes / 512; ++i) cp_async_16(to + i * 512, from + i * 512);
    constexpr int kRest = kBytes / 512 * 512;
    if (lane < (kBytes - kRest) / 16) cp_async_16(to + kRest, from + kRest);
  }
};

}  // namespace minfer::cu
