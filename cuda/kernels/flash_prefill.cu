// out[t, h, :] = sum_j softmax_j(scale * q[t, h, :] . k[j, :]) v[j, :] over keys j = 0 .. pos(t) of t's
// sequence.
//
// Tile:      one block of 4 warps a (FlashTile, query head): 128 q rows, 32 a warp (head_dim 256: 64 rows, 16
//            a warp). It walks over the keys from position 0 in steps of 64 (head_dim 256: 32).
// Shared:    q [rows, D], then two stages of k [keys, D] and v [keys, D]: 96 KB at D = 128 and 256, 72 at 96,
//            48 at 64, so that a card with 99 KB a block runs it and Hopper holds two blocks an SM. Rows are
//            not padded; their 16-byte chunks are permuted (Swizzle below), which keeps copies and ldmatrix
//            free of bank conflicts.
// Registers: with m16 tiles of 32 rows, a lane owns o: 2 x D/8 x 4 f32 (128 at D = 128), s: 2 x 8 x 4 f32,
//            and of each of its 4 rows (g and g + 8 of an m16 tile, g = lane / 4) the softmax state: the
//            largest score and its share of the sum. P goes from the accumulators of q.k to the A operand of
//            P*V without leaving the lane (Dao 2023). All 255 are in use at D = 128: the four sums and some
//            row numbers live in local memory, which a step of 1,050 instructions touches 13 times; the
//            products spill nothing.
// Pipeline:  cp.async of step j + 1 runs under the products of step j; one barrier a step.
// Ledger:    a step of 128 x 64 at D = 128 is 4.2 MFLOP for 32 KB of k and v from L2; a warp issues 256 mma
//            (m16n8k16) and 80 ldmatrix.x4, 1.25 shared-memory clocks an mma over the SM where the tensor
//            cores take 1.6. With 16 rows a warp the fragments of k and v serve half the products: 2.25
//            clocks, and shared memory is the bound. 2048 tokens, 28 heads: 30 GFLOP of causal work, 7,616
//            steps, 250 MB from L2.
#include "cuda/kernels/flash_prefill.h"

#include <algorithm>
#include <functional>
#include <string>

#include "core/error.h"
#include "cuda/device/cp_async.h"
#include "cuda/device/exp2.h"
#include "cuda/device/ldmatrix.h"
#include "cuda/device/mma.h"
#include "cuda/device/shared_address.h"
#include "cuda/device/vec.h"
#include "cuda/runtime/align.h"
#include "cuda/runtime/check.h"

namespace minfer::cu {
namespace {

constexpr int kWarps = 4, kThreads = 32 * kWarps;
constexpr float kLog2e = 1.44269504f;
// P is scaled by 2^10, which cancels in o / sum: f16 then keeps weights down to 6e-8 of the largest at full
// precision.
constexpr float kPExponent = 10.0f;
// The largest score of a row that has seen no key; any real one (|q.k| <= 256 * 65504^2 = 1.1e12) is far
// above.
constexpr float kNoScore = -1e30f;

template <int kD, int kRowsInWarp, int kKeysInStep, int kMinBlocks>
struct Tile {
  static constexpr int kHeadDim = kD, kBlocks = kMinBlocks;
  static constexpr int kWarpRows = kRowsInWarp, kRows = kWarps * kWarpRows, kKeys = kKeysInStep;
  static constexpr int kRowTiles = kWarpRows / 16, kKeyTiles = kKeys / 8, kDimTiles = kD / 8;
  static constexpr int kRowBytes = kD * 2, kChunks = kD / 8;
  static constexpr int kQBytes = kRows * kRowBytes, kKBytes = kKeys * kRowBytes, kStageBytes = 2 * kKBytes;
  static constexpr int kSharedBytes = kQBytes + 2 * kStageBytes;

  // Swizzle: chunk c of row r stands at c ^ swizzle(r), within its aligned group of kWindow chunks. Eight
  // rows' chunks c (an ldmatrix phase) and one row's group (a copy's) then lie in all 8 bank groups. Rows of
  // 192 bytes start at bank group 4 r mod 8, so there the pairs of rows count.
  static constexpr int kWindow = kChunks % 8 == 0 ? 8 : 4;
  static __device__ int swizzle(int row) { return kWindow == 8 ? row & 7 : (row >> 1) & 3; }
  // From the address of a lane's chunk 0 or 1 to that of the chunk `chunk` (even, a constant) further right.
  static __device__ uint32_t right(uint32_t address, int chunk) {
    return (address ^ (chunk % kWindow * 16)) + chunk / kWindow * kWindow * 16;
  }
};

template <int kHeadDim>
struct TileOf {
  using Type = Tile<kHeadDim, 32, 64, 2>;
};
template <>
struct TileOf<64> {
  using Type = Tile<64, 32, 64, 2>;
};
template <>
struct TileOf<256> {
  using Type = Tile<256, 16, 32, 2>;
};

// Copies kRows rows of `row_stride` halves from `global` on; those from n_valid on become zeros (0 * NaN is
// NaN, so a masked key's v must be a number), and are not read.
template <typename T, int kRows, bool kAllValid>
__device__ __forceinline__ void load_rows(uint32_t shared, const half* global, int row_stride, int n_valid) {
  constexpr int kPassRows = kThreads / T::kWindow;
  const int column = threadIdx.x % T::kWindow, first = threadIdx.x / T::kWindow;
  const uint32_t to = shared + first * T::kRowBytes + (column ^ T::swizzle(first)) * 16;
  const half* from = global + int64_t{first} * row_stride + column * 8;
#pragma unroll
  for (int pass = 0; pass < kRows / kPassRows; ++pass) {
    const int64_t offset = int64_t{pass} * kPassRows * row_stride;
    const bool valid = kAllValid || first + pass * kPassRows < n_valid;
#pragma unroll
    for (int chunk = 0; chunk < T::kChunks; chunk += T::kWindow) {
      const uint32_t chunk_to = to + pass * kPassRows * T::kRowBytes + chunk * 16;
      if constexpr (kAllValid) {
        cp_async_16(chunk_to, from + offset + chunk * 8);
      } else {
        cp_async_16_or_zero(chunk_to, valid ? from + offset + chunk * 8 : global, valid);
      }
    }
  }
}

template <typename T>
__device__ __forceinline__ void load_step(uint32_t stage, const KvArena& kv, int64_t offset, int n_valid) {
  const half* k = static_cast<const half*>(kv.k) + offset;
  const half* v = static_cast<const half*>(kv.v) + offset;
  if (n_valid >= T::kKeys) {
    load_rows<T, T::kKeys, true>(stage, k, T::kHeadDim, n_valid);
    load_rows<T, T::kKeys, true>(stage + T::kKBytes, v, T::kHeadDim, n_valid);
  } else {
    load_rows<T, T::kKeys, false>(stage, k, T::kHeadDim, n_valid);
    load_rows<T, T::kKeys, false>(stage + T::kKBytes, v, T::kHeadDim, n_valid);
  }
}

// What a warp keeps of its rows. Row 16 m + g + 8 i: index [m][i]; o[m][d][2 i + e] is its dim 8 d + 2 (lane
// % 4) + e.
template <typename T>
struct Rows {
  float o[T::kRowTiles][T::kDimTiles][4];
  float largest[T::kRowTiles][2];  // q.k so far
  float sum[T::kRowTiles][2];      // of this lane's p
};

template <typename T>
__device__ __forceinline__ void clear(Rows<T>& rows) {
#pragma unroll
  for (int m = 0; m < T::kRowTiles; ++m) {
#pragma unroll
    for (int d = 0; d < T::kDimTiles; ++d) {
#pragma unroll
      for (int i = 0; i < 4; ++i) rows.o[m][d][i] = 0.0f;
    }
    rows.largest[m][0] = rows.largest[m][1] = kNoScore;
    rows.sum[m][0] = rows.sum[m][1] = 0.0f;
  }
}

template <typename T>
using Scores = float[T::kRowTiles][T::kKeyTiles][4];
template <typename T>
using Weights = uint32_t[T::kRowTiles][T::kKeys / 16][4];  // A operands of P*V

// q_lane: row lane % 16 of the warp's q rows, chunk lane / 16. k_lane: key lane % 8 + 8 (lane / 16), chunk
// lane / 8 % 2.
template <typename T>
__device__ __forceinline__ void score(Scores<T>& s, uint32_t q_lane, uint32_t k_lane) {
#pragma unroll
  for (int m = 0; m < T::kRowTiles; ++m) {
#pragma unroll
    for (int n = 0; n < T::kKeyTiles; ++n) s[m][n][0] = s[m][n][1] = s[m][n][2] = s[m][n][3] = 0.0f;
  }
#pragma unroll
  for (int c = 0; c < T::kChunks; c += 2) {
    uint32_t a[T::kRowTiles][4];
#pragma unroll
    for (int m = 0; m < T::kRowTiles; ++m) ldmatrix_x4(a[m], T::right(q_lane, c) + m * 16 * T::kRowBytes);
#pragma unroll
    for (int n = 0; n < T::kKeyTiles; n += 2) {
      uint32_t b[4];
      ldmatrix_x4(b, T::right(k_lane, c) + n * 8 * T::kRowBytes);
#pragma unroll
      for (int m = 0; m < T::kRowTiles; ++m) {
        mma_m16n8k16(s[m][n], a[m], b[0], b[1]);
        mma_m16n8k16(s[m][n + 1], a[m], b[2], b[3]);
      }
    }
  }
}

// Keys after a row's position. `limit`: position of the lane's row 0 minus its first key of the step.
template <typename T>
__device__ __forceinline__ void mask(Scores<T>& s, int limit) {
#pragma unroll
  for (int m = 0; m < T::kRowTiles; ++m) {
#pragma unroll
    for (int n = 0; n < T::kKeyTiles; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (8 * n + i % 2 > limit + 16 * m + 8 * (i / 2)) s[m][n][i] = -INFINITY;
      }
    }
  }
}

// The step's p = 2^(scale_log2e * (s - largest) + kPExponent), and the earlier sums brought to the new
// largest. The difference comes first: of scores of 1e9, scale_log2e * s - scale_log2e * largest in one fused
// step would be off by whole powers of two. Masked scores give 0, and a row with no other kind keeps its
// state: it is multiplied by 2^0. A NaN score is passed over by max and makes its p NaN.
template <typename T>
__device__ __forceinline__ void soften(Weights<T>& p, Rows<T>& rows, const Scores<T>& s, float scale_log2e) {
#pragma unroll
  for (int m = 0; m < T::kRowTiles; ++m) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      float largest = s[m][0][2 * i];
#pragma unroll
      for (int n = 0; n < T::kKeyTiles; ++n) {
        largest = fmaxf(largest, fmaxf(s[m][n][2 * i], s[m][n][2 * i + 1]));
      }
      largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 1));
      largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 2));
      largest = fmaxf(largest, rows.largest[m][i]);
      const float shrink = fast_exp2((rows.largest[m][i] - largest) * scale_log2e);
      rows.largest[m][i] = largest;
      float sum = rows.sum[m][i] * shrink;
#pragma unroll
      for (int n = 0; n < T::kKeyTiles; ++n) {
        const float p0 = fast_exp2(fmaf(s[m][n][2 * i] - largest, scale_log2e, kPExponent));
        const float p1 = fast_exp2(fmaf(s[m][n][2 * i + 1] - largest, scale_log2e, kPExponent));
        sum += p0 + p1;
        p[m][n / 2][n % 2 * 2 + i] = pack_half2(p0, p1);
      }
      rows.sum[m][i] = sum;
#pragma unroll
      for (int d = 0; d < T::kDimTiles; ++d) {
        rows.o[m][d][2 * i] *= shrink;
        rows.o[m][d][2 * i + 1] *= shrink;
      }
    }
  }
}

// v_lane: key lane % 16 of the stage's v, chunk lane / 16.
template <typename T>
__device__ __forceinline__ void add_values(Rows<T>& rows, const Weights<T>& p, uint32_t v_lane) {
#pragma unroll
  for (int n = 0; n < T::kKeys / 16; ++n) {
#pragma unroll
    for (int d = 0; d < T::kDimTiles; d += 2) {
      uint32_t b[4];
      ldmatrix_x4_trans(b, T::right(v_lane, d) + n * 16 * T::kRowBytes);
#pragma unroll
      for (int m = 0; m < T::kRowTiles; ++m) {
        mma_m16n8k16(rows.o[m][d], p[m][n], b[0], b[1]);
        mma_m16n8k16(rows.o[m][d + 1], p[m][n], b[2], b[3]);
      }
    }
  }
}

// o / sum as f16 through the warp's own rows of q's shared memory, so that rows leave as whole 16-byte
// chunks. first_pos: of the warp's row 0. out: that row's head.
template <typename T>
__device__ __forceinline__ void store_rows(const Rows<T>& rows, unsigned char* q_rows, half* out,
                                           int row_stride, int n_rows, int first_pos) {
  const int lane = threadIdx.x % 32, g = lane / 4;
  __syncwarp();  // the other lanes' last ldmatrix of these q rows is done
#pragma unroll
  for (int m = 0; m < T::kRowTiles; ++m) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int row = 16 * m + g + 8 * i;
      float sum = rows.sum[m][i];
      sum += __shfl_xor_sync(0xffffffffu, sum, 1);
      sum += __shfl_xor_sync(0xffffffffu, sum, 2);
      const bool has_keys =
          first_pos + row >= 0;  // not sum > 0: scores of -inf alone are an error that must show
      const float inverse = 1.0f / sum;
#pragma unroll
      for (int d = 0; d < T::kDimTiles; ++d) {
        const int chunk = d ^ T::swizzle(g);
        const uint32_t value = pack_half2(rows.o[m][d][2 * i] * inverse, rows.o[m][d][2 * i + 1] * inverse);
        *reinterpret_cast<uint32_t*>(q_rows + row * T::kRowBytes + chunk * 16 + lane % 4 * 4) =
            has_keys ? value : 0u;
      }
    }
  }
  __syncwarp();  // all of the warp's rows are written before any lane reads its chunks
#pragma unroll 4
  for (int i = lane; i < T::kWarpRows * T::kChunks; i += 32) {
    const int row = i / T::kChunks, chunk = i % T::kChunks;
    if (row < n_rows) {
      *reinterpret_cast<uint4*>(out + int64_t{row} * row_stride + chunk * 8) =
          *reinterpret_cast<const uint4*>(q_rows + row * T::kRowBytes + (chunk ^ T::swizzle(row)) * 16);
    }
  }
}

// The rows of a warp: n_rows of them (0: it only copies) from row q_row of the batch and position first_pos
// on.
struct WarpRows {
  int q_row, first_pos, n_rows;
};
template <typename T>
__device__ __forceinline__ WarpRows warp_rows(const FlashTile& tile) {
  const int row = tile.row + threadIdx.x / 32 * T::kWarpRows;
  return {tile.segment_first_row + row, tile.first_pos + row,
          max(0, min(T::kWarpRows, tile.segment_n_rows - row))};
}

template <typename T>
__global__ void __launch_bounds__(kThreads, T::kBlocks)
    flash_prefill_kernel(const FlashPrefillArgs a, float scale_log2e) {
  extern __shared__ __align__(128) unsigned char shared[];
  const FlashTile tile = a.tiles[blockIdx.y];
  const int head = blockIdx.x, head_kv = head / (a.n_head / a.n_head_kv);
  const int row_stride = a.n_head * T::kHeadDim;
  const int n_rows = min(T::kRows, tile.segment_n_rows - tile.row);
  const int n_keys = tile.first_pos + tile.row + n_rows;  // <= 0: no row has keys
  int64_t kv_offset =
      (int64_t{head_kv} * a.kv.n_slots + tile.first_slot) * T::kHeadDim;  // of the step to copy

  const int lane = threadIdx.x % 32, warp_row = threadIdx.x / 32 * T::kWarpRows;
  const WarpRows warp = warp_rows<T>(tile);
  const int warp_n_keys = warp.n_rows > 0 ? warp.first_pos + warp.n_rows : 0;
  const uint32_t q_shared = shared_address(shared), stages = q_shared + T::kQBytes;
  const uint32_t q_lane =
      q_shared + (warp_row + lane % 16) * T::kRowBytes + ((lane / 16) ^ T::swizzle(lane & 7)) * 16;
  const uint32_t k_lane =
      stages + (lane % 8 + lane / 16 * 8) * T::kRowBytes + ((lane / 8 % 2) ^ T::swizzle(lane & 7)) * 16;
  const uint32_t v_lane =
      stages + T::kKBytes + lane % 16 * T::kRowBytes + ((lane / 16) ^ T::swizzle(lane & 7)) * 16;

  Rows<T> rows;
  clear<T>(rows);
  if (n_keys > 0) {
    const half* q = a.q + int64_t{tile.segment_first_row + tile.row} * row_stride + head * T::kHeadDim;
    load_rows<T, T::kRows, false>(q_shared, q, row_stride, n_rows);
    load_step<T>(stages, a.kv, kv_offset, n_keys);
    cp_async_commit();
  }
  for (int first_key = 0; first_key < n_keys; first_key += T::kKeys) {
    const uint32_t stage = first_key / T::kKeys % 2 * T::kStageBytes;
    cp_async_wait<0>();  // this thread's copies of the step (and of q, at first) have landed
    __syncthreads();     // so have the other threads', and every warp is done with the stage copied to next
    if (const int next = first_key + T::kKeys; next < n_keys) {
      kv_offset += T::kKeys * T::kHeadDim;
      load_step<T>(stages + (stage ^ T::kStageBytes), a.kv, kv_offset, n_keys - next);
      cp_async_commit();
    }
    // Steps beyond a warp's last position change nothing: skipped. Only those around the diagonal need the
    // mask.
    if (first_key < warp_n_keys) {
      Scores<T> s;
      Weights<T> p;
      score<T>(s, q_lane, k_lane + stage);
      if (first_key + T::kKeys - 1 > warp.first_pos)
        mask<T>(s, warp.first_pos + lane / 4 - first_key - lane % 4 * 2);
      soften<T>(p, rows, s, scale_log2e);
      add_values<T>(rows, p, v_lane + stage);
    }
  }
  // Read again: the loop has no register to keep them in.
  const WarpRows ending = warp_rows<T>(a.tiles[blockIdx.y]);
  if (ending.n_rows > 0) {
    half* out = a.out + int64_t{ending.q_row} * row_stride + head * T::kHeadDim;
    store_rows<T>(rows, shared + warp_row * T::kRowBytes, out, row_stride, ending.n_rows, ending.first_pos);
  }
}

template <typename T>
void launch(const FlashPrefillArgs& a, cudaStream_t stream) {
  allow_shared_memory(reinterpret_cast<const void*>(flash_prefill_kernel<T>), T::kSharedBytes,
                      "flash_prefill");
  const dim3 grid(a.n_head, a.n_tiles);  // all heads of the longest tile first
  flash_prefill_kernel<T><<<grid, kThreads, T::kSharedBytes, stream>>>(a, a.scale * kLog2e);
  check_launch("flash_prefill");
}

[[noreturn]] void fail_head_dim(int head_dim) {
  throw Error(ExitCode::kDevice, "flash_prefill: head dim " + std::to_string(head_dim) +
                                     " is not supported: 64, 96, 128 and 256 are");
}

}  // namespace

int flash_prefill_tile_rows(int head_dim) {
  switch (head_dim) {
    case 64:
      return TileOf<64>::Type::kRows;
    case 96:
      return TileOf<96>::Type::kRows;
    case 128:
      return TileOf<128>::Type::kRows;
    case 256:
      return TileOf<256>::Type::kRows;
  }
  fail_head_dim(head_dim);
}

std::vector<FlashTile> flash_prefill_tiles(std::span<const FlashSegment> segments, int head_dim) {
  const int tile_rows = flash_prefill_tile_rows(head_dim);
  std::vector<FlashTile> tiles;
  for (const FlashSegment& s : segments) {
    for (int row = 0; row < s.n_rows; row += tile_rows) {
      tiles.push_back({s.first_row, s.n_rows, s.first_pos, s.first_slot, row});
    }
  }
  const auto n_keys = [=](const FlashTile& t) {
    return t.first_pos + std::min(t.row + tile_rows, t.segment_n_rows);
  };
  std::ranges::stable_sort(tiles, std::greater<>{}, n_keys);
  return tiles;
}

void flash_prefill(const FlashPrefillArgs& a, cudaStream_t stream) {
  MINFER_REQUIRE("flash_prefill", a.n_tiles > 0 && a.n_tiles <= 65535);
  MINFER_REQUIRE("flash_prefill", a.n_head_kv > 0 && a.n_head > 0 && a.n_head % a.n_head_kv == 0);
  MINFER_REQUIRE("flash_prefill", a.kv.n_slots > 0 && a.scale > 0);
  MINFER_REQUIRE("flash_prefill", a.tiles != nullptr && aligned16(a.q, a.out, a.kv.k, a.kv.v));
  switch (a.head_dim) {
    case 64:
      return launch<TileOf<64>::Type>(a, stream);
    case 96:
      return launch<TileOf<96>::Type>(a, stream);
    case 128:
      return launch<TileOf<128>::Type>(a, stream);
    case 256:
      return launch<TileOf<256>::Type>(a, stream);
  }
  fail_head_dim(a.head_dim);
}

}  // namespace minfer::cu
