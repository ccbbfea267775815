// y = W x for up to 8 rows of x, W in tiles of 16 rows x 256 columns (quant_tiles.h; of q4_0, q4_1, q5_0
// and q8_0 a tile is four pieces of 64 columns, the last of a row one to four), on tensor cores.
//
// Unit:      16 rows of one matrix, whole width: n_k tiles. Its tiles are dealt to `n_slices` slices in
//            turn (slice i: tiles i, i + n_slices, ...); a warp owns slices warp, warp + n_warps, ... A
//            slice's sums lie in registers (tile_products.h), then in shared memory, where the slices are
//            added in ascending order. So the order of a sum depends on n_cols alone: neither the number of
//            warps nor the grid nor n_tokens is in it.
// Pipeline:  each warp streams the tiles of its slices, unit after unit, through a ring of its own in
//            shared memory (cp.async), and nobody else waits for them: one sequence, two tiles, one of them
//            under way, 48 KB of q4_K in flight from the 21 warps of an SM; several, three tiles and 14
//            warps, 64 KB. More is slower (below): perhaps since what is under way when the last tile is
//            asked for is multiplied while no memory works.
// Early:     GemvArgs::early. The ring is filled before the wait for the kernels ahead: weights are nobody's
//            results. It pays for one sequence only, so several start plainly.
// Registers: one sequence: a quarter of a tile (of q4_K half of one) at a time, 80 a thread, three blocks an
//            SM. Several: a whole tile's reads side by side, 128, two blocks of K types; faster than
//            a quarter at a time, 96 and three blocks.
// Shared:    the rings, and the slices' sums: two buffers, so that one barrier a unit is enough.
// Bytes:     q4_K 2304, q6_K 3360 a tile for 8192 flops a sequence; x comes from L1. Issue slots, q4_K, one
//            sequence: about 270 a tile; eight: 370; q6_K 370 and 510.
// Measured:  H200, second run, us for the 113 launches of a 7B decode step (4.37 GB) in a graph,
//            plain / early. One sequence, ring of 2: 1443 / 1376, of 3: 1541 / 1360, of 4: 1605 / 1387;
//            reading alone (3): 1264 / 1190. Eight, ring of 3, two blocks (addends read late):
//            2285 / 2281; three blocks with a quarter at a time 2558 / 2718 (of 2: 2506 / 2445, of 4: 2975 /
//            2940); reading alone 1360 / 1241.
#include <algorithm>
#include <climits>
#include <map>
#include <mutex>
#include <utility>

#include "cuda/device/dependent_launch.h"
#include "cuda/device/shared_address.h"
#include "cuda/kernels/gemv_tile_stream.h"
#include "cuda/runtime/check.h"
#include "cuda/runtime/multiprocessors.h"
#include "cuda/runtime/switches.h"

namespace minfer::cu {
namespace {

using gguf::TensorType;

constexpr int kMaxWarps = 8;
constexpr int kMaxSlices = 16;
// Of the slices' sums: the rows of 4 lane quarters (2 sequences each) meet 32 banks once.
constexpr int kTokenStride = 20;

// Tiles of a warp's ring: one of them is multiplied, the others are under way.
constexpr int ring_stages(bool wide) {
  return wide ? 3 : 2;
}

template <bool kWide>
struct Partials {
  static constexpr int kSize = kWide ? kGemvMaxRows * kTokenStride : kTileRows;
  float v[2][kMaxSlices][kSize];  // [buffer][slice][t, row]

  __device__ void store(int buffer, int slice, int lane, const TileSums<kWide>& sums) {
    float* to = v[buffer][slice];
    const int g = lane / 4, q = lane % 4;
    if constexpr (kWide) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const float sum = (sums.v[j] + sums.v[4 + j]) + (sums.v[8 + j] + sums.v[12 + j]);
        to[(2 * q + j % 2) * kTokenStride + g + j / 2 * 8] = sum;
      }
    } else {
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        float sum = sums.v[j];
        sum += __shfl_xor_sync(0xffffffffu, sum, 1);
        sum += __shfl_xor_sync(0xffffffffu, sum, 2);
        if (q == 0) to[g + 8 * j] = sum;
      }
    }
  }
  __device__ float total(int buffer, int n_slices, int t, int row) const {
    float sum = 0;
#pragma unroll
    for (int slice = 0; slice < kMaxSlices; ++slice) {  // reads side by side; a 0 added changes no bit
      sum += slice < n_slices ? v[buffer][slice][t * kTokenStride * kWide + row] : 0.0f;
    }
    return sum;
  }
};

// A thread adds up one result of a unit: of so many warps.
constexpr int min_warps(bool wide) {
  return wide ? kGemvMaxRows * kTileRows / kWarpLanes : 1;
}

// What a block carries from unit to unit.
struct BlockState {
  int unit, buffer = 0;
  float beside = 0;  // of this thread's result: the gate's y, or what is added
};

__device__ void load_addend(const TileArgs& a, const Unit& unit, BlockState& state) {
  const TileMatrix& w = a.w[unit.matrix];
  const int t = threadIdx.x / kTileRows, i = unit.tile * kTileRows + threadIdx.x % kTileRows;
  if (a.units_a_group == 2 || t >= a.n_tokens || i >= w.n_rows) return;
  state.beside = gemv_addend(a.out, t, w.first_row + i);
}

// Narrow: this lane's activations of a tile; wide: they are read where they are used.
template <bool kWide, Types kTypes>
__device__ uint4 load_x(bool is_q6, const half* x, int lane, int n_pieces) {
  if (kWide) return make_uint4(0, 0, 0, 0);
  if (kTypes == Types::kEitherK && !is_q6) return Q4Products::load_x(x, lane, n_pieces);
  return ProductsOf<kTypes>::load_x(x, lane, n_pieces);
}
template <class P, bool kWide>
__device__ void multiply_tile(const uint8_t* tile, const half* x, uint4 x_narrow, int lane, int n_pieces,
                              TileSums<kWide>& sums) {
  if constexpr (kWide) {
    P::multiply_wide(tile, x, lane, n_pieces, sums);
  } else {
    P::multiply_narrow(tile, x_narrow, lane, n_pieces, sums);
  }
}
template <bool kWide, Types kTypes>
__device__ void multiply(bool is_q6, const uint8_t* tile, const half* x, uint4 x_narrow, int lane,
                         int n_pieces, TileSums<kWide>& sums) {
  if (kTypes == Types::kEitherK && !is_q6) {
    multiply_tile<Q4Products>(tile, x, x_narrow, lane, n_pieces, sums);
  } else {
    multiply_tile<ProductsOf<kTypes>>(tile, x, x_narrow, lane, n_pieces, sums);
  }
}

template <bool kWide>
__device__ void finish_unit(const TileArgs& a, const Unit& unit, const Partials<kWide>& partials,
                            BlockState& state) {
  // Orders the slices' sums before the reads below; and the reads of this buffer two units ago before its
  // writes now.
  __syncthreads();
  const int buffer = state.buffer;
  state.buffer ^= 1;
  const TileMatrix& w = a.w[unit.matrix];
  const int t = threadIdx.x / kTileRows, row = threadIdx.x % kTileRows, i = unit.tile * kTileRows + row;
  if (t >= a.n_tokens || i >= w.n_rows) return;
  const float y = partials.total(buffer, a.n_slices, t, row);
  if (a.units_a_group == 2 && unit.matrix == 0) {
    state.beside = y;  // the gate
  } else {
    gemv_emit(a.out, t, w.first_row + i, y, state.beside);
  }
}

// Three blocks of 7 warps an SM: 65536 / (3 * 7 * 32) = 97, in steps of 8; of 8 warps, 85. Two of 8: 128.
constexpr int max_registers(bool wide, Types t) {
  return wide ? 128 : t == Types::kEitherK ? 96 : 80;
}

template <bool kWide, Types kTypes>
__global__ void __maxnreg__(max_registers(kWide, kTypes))
    gemv_tiles_kernel(const __grid_constant__ TileArgs a) {
  using S = Stream<kTypes>;
  constexpr int kStages = ring_stages(kWide);
  extern __shared__ uint4 rings[];  // [n_warps][kStages] tiles
  __shared__ Partials<kWide> partials;
  const int lane = threadIdx.x % kWarpLanes, warp = threadIdx.x / kWarpLanes,
            n_warps = blockDim.x / kWarpLanes;
  const uint8_t* ring = reinterpret_cast<const uint8_t*>(rings) + warp * kStages * S::kSlotBytes;
  const uint32_t ring_address = shared_address(ring);
  const half* x = a.x + (kWide ? int64_t{min(lane / 4, a.n_tokens - 1)} * a.n_cols : 0);

  let_dependents_start();  // they only take the room that this kernel's blocks leave
  BlockState state;
  state.unit = static_cast<int>(blockIdx.x) * a.units_a_group;
  Cursor asked;  // kStages - 1 tiles ahead of the products
  S::enter(a, asked, warp < a.n_slices ? state.unit : a.n_units, warp);
#pragma unroll 1
  for (int i = 0; i < kStages - 1; ++i) {
    S::ask(a, asked, ring_address + i * S::kSlotBytes, lane);
    S::advance(a, asked, warp, n_warps);
  }
  wait_for_kernels_ahead();  // orders their writes of x before the reads below, their reads before our writes
  int slot = 0, slot_before = kStages - 1;
  for (; state.unit < a.n_units; state.unit = next_unit(a, state.unit)) {
    const Unit unit = unit_at(a, state.unit);
    const bool is_q6 = kTypes == Types::kEitherK && a.w[unit.matrix].is_q6;
    load_addend(a, unit, state);
    for (int slice = warp; slice < a.n_slices; slice += n_warps) {
      TileSums<kWide> sums;
      sums.clear();
      for (int k = slice; k < a.n_k; k += a.n_slices) {
        const int n_pieces = pieces_of<kTypes>(a, k);
        const half* x_tile = x + k * kTileCols;
        const uint4 x_narrow = load_x<kWide, kTypes>(is_q6, x_tile, lane, n_pieces);  // ahead of the wait
        // This tile's group has arrived; then every lane's part is seen by the warp, and every lane is done
        // with the tile before, whose slot is asked for again.
        cp_async_wait<kStages - 2>();
        __syncwarp();
        S::ask(a, asked, ring_address + slot_before * S::kSlotBytes, lane);
        S::advance(a, asked, warp, n_warps);
        multiply<kWide, kTypes>(is_q6, ring + slot * S::kSlotBytes, x_tile, x_narrow, lane, n_pieces, sums);
        slot_before = slot;
        slot = slot + 1 == kStages ? 0 : slot + 1;
      }
      partials.store(state.buffer, slice, lane, sums);
    }
    finish_unit(a, unit, partials, state);
  }
}

using Kernel = void (*)(TileArgs);

// A kernel, the fewest warps it needs, and the bytes of a warp's ring.
struct Choice {
  Kernel kernel;
  int min_warps;
  size_t ring_bytes;
};

struct Launch {
  Kernel kernel;
  int n_warps;
  size_t shared_bytes;
  bool can_start_early;
};

int blocks_per_multiprocessor(const Launch& l) {
  static std::mutex mutex;
  static std::map<std::pair<Kernel, int>, int> known;
  const std::lock_guard lock(mutex);
  int& n = known[{l.kernel, l.n_warps}];
  if (n == 0) {
    check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, l.kernel, l.n_warps * kWarpLanes, l.shared_bytes),
          "gemv");
    MINFER_REQUIRE("gemv", n >= 1);
  }
  return n;
}

// MINFER_GEMV_WARPS=n takes another number of warps a block, min_warps at least; results are the same.
int wanted_warps() {
  static const int n = switch_number("MINFER_GEMV_WARPS", 1, kMaxWarps, 0);
  return n;
}

// Two slices a warp where there are many: a block's barrier then comes after two tiles or more. Fewer warps
// on a card whose shared memory has no room for their rings.
Launch choose_launch(const Choice& choice, int n_slices) {
  const Kernel kernel = choice.kernel;
  static std::mutex mutex;
  static std::map<Kernel, cudaFuncAttributes> known;
  const std::lock_guard lock(mutex);
  if (!known.contains(kernel)) check(cudaFuncGetAttributes(&known[kernel], kernel), "gemv");
  const cudaFuncAttributes& attributes = known[kernel];
  const size_t limit = shared_memory_limit(), fixed = attributes.sharedSizeBytes;
  int n_warps = wanted_warps() > 0 ? wanted_warps() : n_slices <= kMaxWarps ? n_slices : (n_slices + 1) / 2;
  n_warps = std::max(n_warps, choice.min_warps);
  while (n_warps > choice.min_warps && fixed + static_cast<size_t>(n_warps) * choice.ring_bytes > limit) {
    --n_warps;
  }
  const size_t bytes = static_cast<size_t>(n_warps) * choice.ring_bytes;
  allow_shared_memory(reinterpret_cast<const void*>(kernel), bytes, "gemv");
  // Code made for an older card (as PTX it also runs on newer ones) does not wait for the kernels ahead.
  return {kernel, n_warps, bytes, std::min(attributes.ptxVersion, attributes.binaryVersion) >= 90};
}

// A block a group where all fit at once, else as many blocks an SM as spread the groups most evenly.
int choose_grid(const Launch& l, int n_groups) {
  const int n_sm = multiprocessors(), most = blocks_per_multiprocessor(l);
  if (n_groups <= most * n_sm) return n_groups;
  int best = most, best_load = INT_MAX;
  for (int b = most; b > most / 2; --b) {
    const int load = (n_groups + b * n_sm - 1) / (b * n_sm) * b;  // groups on the busiest SM
    if (load < best_load) best = b, best_load = load;
  }
  return best * n_sm;
}

template <Types kTypes>
Choice choice_of(bool wide) {
  return {wide ? gemv_tiles_kernel<true, kTypes> : gemv_tiles_kernel<false, kTypes>, min_warps(wide),
          size_t{ProductsOf<kTypes>::kTileBytes} * ring_stages(wide)};
}

Choice choose_kernel(TensorType type, bool either_k, bool wide) {
  if (either_k) return choice_of<Types::kEitherK>(wide);
  switch (type) {
    case TensorType::kQ4_K:
      return choice_of<Types::kQ4_K>(wide);
    case TensorType::kQ6_K:
      return choice_of<Types::kQ6_K>(wide);
    case TensorType::kQ4_0:
      return choice_of<Types::kQ4_0>(wide);
    case TensorType::kQ4_1:
      return choice_of<Types::kQ4_1>(wide);
    case TensorType::kQ5_0:
      return choice_of<Types::kQ5_0>(wide);
    default:
      MINFER_REQUIRE("gemv", type == TensorType::kQ8_0);
      return choice_of<Types::kQ8_0>(wide);
  }
}

void launch_kernel(const Launch& l, int n_grid, bool early, const TileArgs& args, cudaStream_t stream) {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(n_grid));
  config.blockDim = dim3(static_cast<unsigned>(l.n_warps * kWarpLanes));
  config.dynamicSmemBytes = l.shared_bytes;
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = early && l.can_start_early ? 1 : 0;
  check(cudaLaunchKernelEx(&config, l.kernel, args), "gemv");
  check_launch("gemv");
}

bool is_k(TensorType type) {
  return type == TensorType::kQ4_K || type == TensorType::kQ6_K;
}

}  // namespace

bool gemv_shares_launch(const GemvArgs& a) {
  for (int m = 0; m < a.n_matrices; ++m) {
    if (!is_tiled(a.w[m].type, a.w[m].n_cols)) return false;
    if (a.w[m].type != a.w[0].type && !(is_k(a.w[m].type) && is_k(a.w[0].type))) return false;
  }
  return true;
}

void gemv_tiles(const GemvArgs& a, int first_row, const GemvOutput& out, cudaStream_t stream) {
  TileArgs args{};
  const bool swiglu = a.epilogue == GemvEpilogue::kSwiglu;
  bool either_k = false;
  for (int m = 0; m < 3; ++m) {
    TileMatrix& w = args.w[m];
    w.first_unit = args.n_units;
    w.first_row = swiglu ? 0 : first_row;
    if (m >= a.n_matrices) continue;
    w.data = static_cast<const uint8_t*>(a.w[m].data);
    w.n_rows = a.w[m].n_rows;
    w.is_q6 = a.w[m].type == TensorType::kQ6_K;
    either_k = either_k || a.w[m].type != a.w[0].type;
    args.n_units += (w.n_rows + kTileRows - 1) / kTileRows;
    first_row += w.n_rows;
  }
  args.units_a_group = swiglu ? 2 : 1;
  args.x = a.x;
  args.n_tokens = a.n_tokens;
  args.n_cols = a.w[0].n_cols;
  args.n_k = (args.n_cols + kTileCols - 1) / kTileCols;
  args.n_slices = std::min(args.n_k, kMaxSlices);
  args.last_pieces = (args.n_cols - (args.n_k - 1) * kTileCols) / kPieceCols;
  args.out = out;
  const bool wide = a.n_tokens > 1, early = a.early && !wide;
  const Launch launch = choose_launch(choose_kernel(a.w[0].type, either_k, wide), args.n_slices);
  launch_kernel(launch, choose_grid(launch, args.n_units / args.units_a_group), early, args, stream);
}

}  // namespace minfer::cu
