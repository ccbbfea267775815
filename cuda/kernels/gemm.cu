// C[nt, od] = A[nt, id] * B[od, id]^T with mma.sync.m16n8k16: f16 operands, f32 sums.
//
// Tile: a block owns BM rows of A times TM rows of B; warps_m x warps_n warps split it, 64 x 64 each in the
// large tiles (128 sums a lane: the most that leaves room for two sets of fragments in 255 registers).
//
// Pipeline: stages of KS columns of both panels in shared memory, filled by cp.async; a stage is asked for in
// two halves, right after the barrier that frees its slot and one k step of 16 later, so that copies do not
// arrive in a burst. One barrier a stage. Fragments are double-buffered: those of k step i + 1 are loaded
// while step i multiplies.
//
// Banks: a row's 16-byte chunks are permuted by swizzle(row), so that the eight rows of every ldmatrix, and
// the eight lanes of every copy, touch 32 different banks.
//
// Columns: which row of B becomes which column of an mma is free. In a group of 16, column 2q + e of the
// first mma is row 4q + e and that of the second is row 4q + 2 + e: lane q of four then holds four adjacent
// columns of C, and a store fills whole 32-byte sectors.
//
// Order: a sum runs over k in ascending steps of 16, with zeros past id: the same for every tile, every nt.
//
// Parts: see gemm_parts.h; a kernel of its own, with K cut over blockIdx.y.
//
// L2: blocks are numbered down 2048 rows of A first, so that a wave of 132 SMs is about 2048 x 2048 of C and
// each panel is read from memory once or twice, 8 or 16 times from L2.
//
// Ledger of 128x256, a k step of 16: 12 KB from L2 (at 440 TFLOP/s: 5.2 TB/s over 132 SMs), 12 KB into shared
// memory and 32 KB out of it (344 clocks), 1.05 MFLOP (410 clocks at mma.sync's 62 % of the tensor peak).
//
// Measured on an H200 at 2048 tokens, B from memory, TFLOP/s (of 790 that cuBLAS reaches at 8192^3). A range
// is what the same code gave from one process to the next, with the clock that power leaves (630 W by then):
//   layer    [od, id]       tile         all of it   without copies   mma alone
//   qkv      4608 x 3584    128x192x64   409
//   o        3584 x 3584    128x224x64   403-429     508              516
//   gate_up 37888 x 3584    128x256x64   417-488     586              596
//   down     3584 x 18944   128x224x64   430-460     580              593
// So reading fragments is hidden, and what is left to gain stands in the copies: their 96 clocks of shared
// memory on top of ldmatrix's 256, and L2. Without copies the operands are stale bytes, not random ones, and
// take less power: the gap is less than it looks.
#include <cstdint>
#include <iterator>
#include <limits>
#include <string>
#include <utility>

#include "core/error.h"
#include "cuda/device/cp_async.h"
#include "cuda/device/ldmatrix.h"
#include "cuda/device/mma.h"
#include "cuda/device/shared_address.h"
#include "cuda/device/vec.h"
#include "cuda/kernels/gemm.h"
#include "cuda/kernels/gemm_epilogue.h"
#include "cuda/kernels/gemm_parts.h"
#include "cuda/kernels/gemm_tile.h"
#include "cuda/runtime/align.h"
#include "cuda/runtime/ceil_div.h"
#include "cuda/runtime/check.h"

namespace minfer::cu {
namespace {

template <int kBm, int kTm, int kKs, bool kF32A>
struct Shape {
  static constexpr GemmTile kTile = {kBm, kTm, kKs};
  static constexpr GemmGeometry kGeometry = gemm_geometry(kTile, kF32A);
  static constexpr bool kConvertsA = kF32A;
  static constexpr int kRowsA = kBm, kRowsB = kTm, kStep = kKs;
  static constexpr int kThreads = kGeometry.threads(), kStages = kGeometry.stages;
  static constexpr int kWarpM = kBm / kGeometry.warps_m, kWarpN = kTm / kGeometry.warps_n;
  static constexpr int kMmaM = kWarpM / 16;       // m16 tiles of a warp
  static constexpr int kGroups = kWarpN / 16;     // column groups of two n8 tiles
  static constexpr bool kOdd = kWarpN % 16 != 0;  // one n8 tile more
  static constexpr int kRowBytesA = kKs * (kF32A ? 4 : 2), kRowBytesB = kKs * 2;
  static constexpr int kPanelA = kBm * kRowBytesA, kStageBytes = kPanelA + kTm * kRowBytesB;
  static_assert(kStageBytes == kGeometry.stage_bytes && kStages >= 2 && kWarpN % 8 == 0 && kWarpM % 16 == 0);
};

// What chunk numbers of `row` are xored with. 128-byte rows: three bits, different for the eight rows of
// every ldmatrix: an aligned eight, and (4q + e, or 4q + 2 + e) of the column groups. 64-byte rows: bit 0 is
// the half of a 128-byte line already, two bits more. f32 rows: a half warp reads 32 bytes of each of four
// rows.
template <int kRowBytes, bool kF32>
__device__ constexpr int swizzle(int row) {
  if (kF32) return (row & 3) << 1;
  const int high = ((row >> 2) & 1) | (((row >> 3) ^ (row >> 1)) & 1) << 1;
  return kRowBytes == 64 ? high : (high << 1) | (row & 1);
}

// One thread's share of copying kRows rows of a matrix into every stage.
template <int kRows, int kRowBytes, bool kF32, int kThreads>
struct PanelCopy {
  static constexpr int kChunks = kRowBytes / 16;
  static constexpr int kRowStep = kThreads / kChunks;  // rows from one copy of this thread to its next
  static constexpr int kCopies = kRows / kRowStep;
  // swizzle() is the same for all rows of a thread.
  static_assert(kRows % kRowStep == 0 && kCopies <= 32 && kRowStep % (kF32 ? 4 : 16) == 0);

  const char* matrix;  // an address that is always ours
  const char* source;  // this thread's chunk of its first row, of the next stage
  int64_t row_step;    // bytes from one row of this thread to its next
  int bytes_left;      // of the row, from that chunk on
  uint32_t inside;     // bit i: row i of this thread is one of the matrix
  uint32_t place;      // of that chunk within a panel

  // Of every row the first n_bytes.
  __device__ PanelCopy(const void* data, int64_t row_bytes, int n_bytes, int first_row, int n_rows) {
    const int row = threadIdx.x / kChunks, chunk = threadIdx.x % kChunks;
    matrix = static_cast<const char*>(data);
    source = matrix + (first_row + row) * row_bytes + chunk * 16;
    row_step = kRowStep * row_bytes;
    bytes_left = n_bytes - chunk * 16;
    inside = 0;
#pragma unroll
    for (int i = 0; i < kCopies; ++i) inside |= uint32_t{first_row + row + i * kRowStep < n_rows} << i;
    place = row * kRowBytes + (chunk ^ swizzle<kRowBytes, kF32>(row)) * 16;
  }

  // Rows past the matrix and columns past its rows arrive as zeros, unread.
  template <int kFrom, int kTo>
  __device__ void ask(uint32_t panel) const {
#pragma unroll
    for (int i = kFrom; i < kTo; ++i) {
      const bool valid = bytes_left > 0 && (inside >> i & 1) != 0;
      cp_async_16_or_zero(panel + place + i * kRowStep * kRowBytes, valid ? source + i * row_step : matrix,
                          valid);
    }
  }
  __device__ void advance() {
    source += kRowBytes;
    bytes_left -= kRowBytes;
  }
};

template <class S>
struct Copier {
  PanelCopy<S::kRowsA, S::kRowBytesA, S::kConvertsA, S::kThreads> a;
  PanelCopy<S::kRowsB, S::kRowBytesB, false, S::kThreads> b;

  __device__ void ask_first_half(uint32_t stage) const {
    a.template ask<0, a.kCopies>(stage);
    b.template ask<0, b.kCopies / 4>(stage + S::kPanelA);
  }
  __device__ void ask_second_half(uint32_t stage) const {
    b.template ask<b.kCopies / 4, b.kCopies>(stage + S::kPanelA);
  }
  __device__ void advance() {
    a.advance();
    b.advance();
  }
};

// The operands of one k step of 16 of a warp.
template <class S>
struct Fragments {
  uint32_t a[S::kMmaM][4];
  uint32_t b[S::kGroups][4];
  uint32_t odd[2];
};

template <class S>
using Sums = GemmSums<S::kMmaM, S::kGroups, S::kOdd>;

// Where a lane's fragments lie within a stage.
template <class S>
struct FragmentReader {
  uint32_t a_row, a_chunk, b_row, b_chunk, odd_row, odd_chunk;

  __device__ FragmentReader(int lane, int warp_m, int warp_n) {
    int row = warp_m * S::kWarpM + (S::kConvertsA ? lane / 4 : lane % 16);
    a_row = row * S::kRowBytesA;
    if constexpr (S::kConvertsA) {
      a_chunk = (((lane & 3) >> 1) ^ swizzle<S::kRowBytesA, true>(row)) * 16 + (lane & 1) * 8;
    } else {
      a_chunk = ((lane >> 4) ^ swizzle<S::kRowBytesA, false>(row)) * 16;
    }
    const int r = lane % 8, upper_k = lane >> 3 & 1;
    row = warp_n * S::kWarpN + (r >> 1) * 4 + (r & 1) + (lane >> 4) * 2;
    b_row = S::kPanelA + row * S::kRowBytesB;
    b_chunk = (upper_k ^ swizzle<S::kRowBytesB, false>(row)) * 16;
    row = warp_n * S::kWarpN + S::kGroups * 16 + r;
    odd_row = S::kPanelA + row * S::kRowBytesB;
    odd_chunk = (upper_k ^ swizzle<S::kRowBytesB, false>(row)) * 16;
  }

  // A k step is two chunks of f16, four of f32, numbered as those of step 0 but for an xor.
  __device__ void load(Fragments<S>& f, uint32_t stage, int k_step) const {
#pragma unroll
    for (int m = 0; m < S::kMmaM; ++m) {
      const uint32_t row = stage + a_row + m * 16 * S::kRowBytesA;
      if constexpr (S::kConvertsA) {
        const uint32_t chunk = a_chunk ^ (k_step * 64);
        f.a[m][0] = half_pair(row + chunk);
        f.a[m][1] = half_pair(row + 8 * S::kRowBytesA + chunk);
        f.a[m][2] = half_pair(row + (chunk ^ 32));
        f.a[m][3] = half_pair(row + 8 * S::kRowBytesA + (chunk ^ 32));
      } else {
        ldmatrix_x4(f.a[m], row + (a_chunk ^ (k_step * 32)));
      }
    }
#pragma unroll
    for (int j = 0; j < S::kGroups; ++j) {
      ldmatrix_x4(f.b[j], stage + b_row + j * 16 * S::kRowBytesB + (b_chunk ^ (k_step * 32)));
    }
    if constexpr (S::kOdd) ldmatrix_x2(f.odd, stage + odd_row + (odd_chunk ^ (k_step * 32)));
  }

  static __device__ uint32_t half_pair(uint32_t shared) {
    const float2 v = load_shared2(shared);
    return pack_half2(v.x, v.y);
  }
};

template <class S>
__device__ void multiply(Sums<S>& sums, const Fragments<S>& f) {
#pragma unroll
  for (int m = 0; m < S::kMmaM; ++m) {
#pragma unroll
    for (int i = 0; i < S::kGroups; ++i) {
      const int j = m % 2 == 0 ? i : S::kGroups - 1 - i;  // back and forth: the one at the turn is used twice
      mma_m16n8k16(sums.group[m][j][0], f.a[m], f.b[j][0], f.b[j][1]);
      mma_m16n8k16(sums.group[m][j][1], f.a[m], f.b[j][2], f.b[j][3]);
    }
    if constexpr (S::kOdd) mma_m16n8k16(sums.odd[m], f.a[m], f.odd[0], f.odd[1]);
  }
}

// Block -> tile: bands of 2048 rows of A; in a band down the rows first, so that neighbours share rows of B.
template <class S>
__device__ int2 first_row_and_column(int nt, int od) {
  constexpr int kBand = 2048 / S::kRowsA;
  const int tiles_m = (nt + S::kRowsA - 1) / S::kRowsA, tiles_n = (od + S::kRowsB - 1) / S::kRowsB;
  const int band = blockIdx.x / (kBand * tiles_n), in_band = blockIdx.x % (kBand * tiles_n);
  const int height = min(kBand, tiles_m - band * kBand);
  return make_int2((band * kBand + in_band % height) * S::kRowsA, in_band / height * S::kRowsB);
}

// kSplit: blockIdx.y is the part of K.
template <class S, bool kSplit>
__global__ void __launch_bounds__(S::kThreads, S::kGeometry.blocks_per_sm) gemm_kernel(const GemmArgs p) {
  extern __shared__ __align__(128) unsigned char shared[];  // [kStages][A panel, B panel]
  const int2 first = first_row_and_column<S>(p.nt, p.od);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int warp_m = warp % S::kGeometry.warps_m, warp_n = warp / S::kGeometry.warps_m;
  const uint32_t begin = shared_address(shared), end = begin + S::kStages * S::kStageBytes;
  const auto next = [&](uint32_t stage) {
    return stage + S::kStageBytes == end ? begin : stage + S::kStageBytes;
  };

  static_assert(!(kSplit && S::kConvertsA));
  const int part = kSplit ? gemm_part_length(p.id, p.split.n) : p.id,
            first_k = kSplit ? blockIdx.y * part : 0;
  const int n_k = kSplit ? min(part, p.id - first_k) : p.id;
  const void* a = S::kConvertsA ? static_cast<const void*>(p.a_f32) : p.a + first_k;
  constexpr int kBytesA = S::kConvertsA ? 4 : 2;
  Copier<S> copier = {{a, int64_t{p.id} * kBytesA, n_k * kBytesA, first.x, p.nt},
                      {p.b + first_k, int64_t{p.id} * 2, n_k * 2, first.y, p.od}};
  const FragmentReader<S> reader(lane, warp_m, warp_n);
  const int n_stages = (n_k + S::kStep - 1) / S::kStep;
  constexpr int kSteps = S::kStep / 16;

  // Stages 0 .. kStages - 2, a group each, and the first half of the one after; a stage past the end is an
  // empty group.
  uint32_t filling = begin;
  for (int s = 0; s < S::kStages - 1; ++s, filling += S::kStageBytes) {
    if (s < n_stages) {
      copier.ask_first_half(filling);
      copier.ask_second_half(filling);
    }
    cp_async_commit();
    copier.advance();
  }
  if (S::kStages - 1 < n_stages) copier.ask_first_half(filling);

  Sums<S> sums;
  Fragments<S> fragments[2];
  uint32_t reading = begin;
  cp_async_wait<S::kStages - 2>();  // this thread's part of stage 0 has arrived
  __syncthreads();                  // and everybody's
  reader.load(fragments[0], reading, 0);
  for (int s = 0; s < n_stages; ++s) {
#pragma unroll
    for (int k = 0; k < kSteps; ++k) {
      if (k == kSteps - 1) {
        cp_async_wait<S::kStages - 2>();  // this thread's part of stage s + 1 has arrived
        __syncthreads();  // everybody's has; and all have read the last of stage s: its slot is free
        reading = next(reading);
      }
      // After the last stage these are stale bytes that nobody multiplies.
      reader.load(fragments[(k + 1) % 2], reading, (k + 1) % kSteps);
      if (k == kSteps - 1 && s + S::kStages < n_stages) copier.ask_first_half(filling);
      if (k == 0) {
        if (s + S::kStages - 1 < n_stages) copier.ask_second_half(filling);
        cp_async_commit();
        copier.advance();
        filling = next(filling);
      }
      multiply(sums, fragments[k % 2]);
    }
  }
  if constexpr (kSplit) {
    if (!add_up_parts<S::kThreads>(p, sums)) return;
  }
  store(p, sums, lane, first.x + warp_m * S::kWarpM + lane / 4, first.y + warp_n * S::kWarpN);
}

using Kernel = void (*)(const GemmArgs);

template <bool kF32A, size_t kIndex>
constexpr Kernel kernel_of_tile() {
  constexpr GemmTile t = kGemmTiles[kIndex];
  if constexpr (kF32A && !gemm_takes_f32_a(t)) {
    return nullptr;
  } else {
    return gemm_kernel<Shape<t.bm, t.tm, t.ks, kF32A>, false>;
  }
}

// Null where the tile is not among those built.
template <bool kF32A, size_t... kIndex>
Kernel find_kernel(const GemmTile& wanted, std::index_sequence<kIndex...>) {
  static constexpr Kernel kKernels[] = {kernel_of_tile<kF32A, kIndex>()...};
  for (size_t i = 0; i < sizeof...(kIndex); ++i) {
    const GemmTile& t = kGemmTiles[i];
    if (t.bm == wanted.bm && t.tm == wanted.tm && t.ks == wanted.ks) return kKernels[i];
  }
  return nullptr;
}

void check_args(const GemmArgs& a) {
  MINFER_REQUIRE("gemm", a.nt >= 1 && a.od >= 1);
  MINFER_REQUIRE("gemm", a.id >= 8 && a.id % 8 == 0 && a.id < 1 << 28);  // a row's bytes fit an int
  MINFER_REQUIRE("gemm", (a.a != nullptr) != (a.a_f32 != nullptr));
  MINFER_REQUIRE("gemm", aligned16(a.a) && aligned16(a.a_f32));
  MINFER_REQUIRE("gemm", a.b != nullptr && aligned16(a.b));
  if (a.epilogue == GemmEpilogue::kSwiglu) {
    MINFER_REQUIRE("gemm", a.od % 2 == 0);
    MINFER_REQUIRE("gemm", a.out_f16 != nullptr && aligned16(a.out_f16));
  } else {
    MINFER_REQUIRE("gemm", a.out_f32 != nullptr && aligned16(a.out_f32));
  }
  MINFER_REQUIRE("gemm", a.bias == nullptr || a.epilogue == GemmEpilogue::kStore);
  MINFER_REQUIRE("gemm", aligned16(a.split.partials));
}

void gemm_in_parts(const GemmArgs& a, cudaStream_t stream) {
  constexpr GemmTile kTile = kGemmSplitTile;
  constexpr GemmGeometry kGeometry = gemm_geometry(kTile, false);
  const int n_tiles = ceil_div(a.od, kTile.tm);
  MINFER_REQUIRE("gemm", a.a != nullptr && a.nt <= kTile.bm);
  MINFER_REQUIRE("gemm", a.split.partials != nullptr && a.split.arrivals != nullptr);
  MINFER_REQUIRE("gemm", a.split.n <= kMaxGemmParts && n_tiles * a.split.n <= kMaxGemmPartBlocks);
  MINFER_REQUIRE("gemm", (a.split.n - 1) * gemm_part_length(a.id, a.split.n) < a.id);  // no part is empty
  const Kernel kernel = gemm_kernel<Shape<kTile.bm, kTile.tm, kTile.ks, false>, true>;
  allow_shared_memory(reinterpret_cast<const void*>(kernel), kGeometry.shared_bytes(), "gemm");
  const dim3 grid(static_cast<unsigned>(n_tiles), static_cast<unsigned>(a.split.n));
  kernel<<<grid, kGeometry.threads(), kGeometry.shared_bytes(), stream>>>(a);
  check_launch("gemm");
}

}  // namespace

void gemm(const GemmArgs& a, const GemmTile& tile, cudaStream_t stream) {
  check_args(a);
  MINFER_REQUIRE("gemm", a.split.n == 1);
  constexpr auto kIndices = std::make_index_sequence<std::size(kGemmTiles)>();
  const bool f32_a = a.a_f32 != nullptr;
  const Kernel kernel = f32_a ? find_kernel<true>(tile, kIndices) : find_kernel<false>(tile, kIndices);
  if (kernel == nullptr) {
    throw Error(ExitCode::kRuntime,
                "gemm: no kernel for tile " + tile.describe() + (f32_a ? " with A in f32" : ""));
  }
  const GemmGeometry g = gemm_geometry(tile, f32_a);
  const int64_t n_blocks = int64_t{ceil_div(a.nt, tile.bm)} * ceil_div(a.od, tile.tm);
  MINFER_REQUIRE("gemm", n_blocks <= std::numeric_limits<int32_t>::max());
  allow_shared_memory(reinterpret_cast<const void*>(kernel), static_cast<size_t>(g.shared_bytes()), "gemm");
  kernel<<<static_cast<unsigned>(n_blocks), g.threads(), g.shared_bytes(), stream>>>(a);
  check_launch("gemm");
}

void gemm(const GemmArgs& a, cudaStream_t stream) {
  if (a.split.n > 1) {
    check_args(a);
    return gemm_in_parts(a, stream);
  }
  gemm(a, gemm_tile(a.nt, a.od, a.id, a.a_f32 != nullptr), stream);
}

}  // namespace minfer::cu
