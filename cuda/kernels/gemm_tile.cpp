// The choice of a GEMM's tile: a scored model of waves, overridden by MINFER_GEMM_TM and MINFER_GEMM_KS.
//
// The busiest SM is given ceil(tiles / SMs) blocks, as many at a time as fit; a round of them costs so many
// clocks a k step of 16, and something at its ends. The clocks a step are fitted to 36 timings of each tile
// on an H200 (qkv, o, gate_up, down of a 7B model: 3584 x {4608, 3584, 37888}, 18944 x 3584; 64 to 4096
// tokens; clocks counted at 1.7 GHz) and agree with them to 7 % rms. Of these 36 shapes, 31 get a tile within
// 3 % of the best that was timed, 34 within 4 %; the rest are gate_up at 512 tokens (9 %) and qkv at 4096 (6
// %), where two tiles swap places from one layer to the next. Other cards have other clocks, but much the
// same order of tiles.
#include "cuda/kernels/gemm_tile.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>

#include "core/error.h"
#include "cuda/runtime/ceil_div.h"
#include "cuda/runtime/check.h"
#include "cuda/runtime/multiprocessors.h"
#include "cuda/runtime/switches.h"

namespace minfer::cu {
namespace {

// Clocks of a k step of 16: of the blocks that share an SM, and of a block that has one to itself (where two
// fit: they hide each other's waits, and a pair of large tiles takes twice as long as one).
struct StepClocks {
  int full = 0, alone = 0;
};
constexpr StepClocks kStepClocks[] = {
    // As kGemmTiles. A pair multiplies for 2 bm tm / 80 clocks, 410 of 128x128's 557. 128x256x64: 503 with
    // three stages, less 3 % for the fourth.
    {219, 197}, {197, 131}, {368, 241}, {353, 188}, {665, 325}, {679, 530}, {348, 225},
    {362, 195}, {557, 272}, {596, 293}, {493, 493}, {485, 485}, {394, 394}, {430, 430},
};
static_assert(std::size(kStepClocks) == std::size(kGemmTiles));

StepClocks step_clocks(const GemmTile& t) {
  for (size_t i = 0; i < std::size(kGemmTiles); ++i) {
    const GemmTile& known = kGemmTiles[i];
    if (known.bm == t.bm && known.tm == t.tm && known.ks == t.ks) return kStepClocks[i];
  }
  throw Error(ExitCode::kRuntime, "gemm: no tile " + t.describe());
}

// n_blocks blocks that walk over `id` columns each.
double cycles(const GemmTile& t, bool f32_a, int64_t n_blocks, int id, int n_sm) {
  const int per_sm = gemm_geometry(t, f32_a).blocks_per_sm;
  const StepClocks clocks = step_clocks(t);
  // A in f32 doubles A's share of the bytes, each at about 0.7 of an average one, and with KS 64 leaves room
  // for too few stages.
  const double slower = f32_a ? (1 + 0.7 * t.bm / (t.bm + t.tm)) * (t.ks == 64 ? 1.08 : 1.0) : 1.0;
  const double steps = static_cast<double>(ceil_div(id, t.ks) * t.ks) / 16 * slower;
  const double ends = 2000 + t.bm * t.tm / 5.0;              // filling the pipeline; the epilogue
  const int64_t blocks = ceil_div(n_blocks, int64_t{n_sm});  // of the busiest SM
  const double full = static_cast<double>(blocks / per_sm) * (clocks.full * steps + ends);
  return blocks % per_sm == 0 ? full : full + clocks.alone * steps + ends;
}

}  // namespace

std::string GemmTile::describe() const {
  return fmt::format("{}x{}x{}", bm, tm, ks);
}

double gemm_cycles(const GemmTile& t, bool f32_a, int nt, int od, int id, int n_sm) {
  return cycles(t, f32_a, int64_t{ceil_div(nt, t.bm)} * ceil_div(od, t.tm), id, n_sm);
}

bool gemm_wants_f32_a() {
  return switch_is_on("MINFER_GEMM_AF32", false);
}

GemmTile gemm_tile(int nt, int od, int id, bool f32_a) {
  constexpr int kMost = 1024;
  const int tm = switch_number("MINFER_GEMM_TM", 1, kMost, 0),
            ks = switch_number("MINFER_GEMM_KS", 1, kMost, 0);
  const int n_sm = multiprocessors();
  const size_t shared_limit = shared_memory_limit();
  GemmTile best;
  size_t least_bytes = std::numeric_limits<size_t>::max();  // of the tiles that may be taken
  double best_cycles = std::numeric_limits<double>::infinity();
  for (const GemmTile& t : kGemmTiles) {
    if ((tm != 0 && t.tm != tm) || (ks != 0 && t.ks != ks) || (f32_a && !gemm_takes_f32_a(t))) continue;
    const auto bytes = static_cast<size_t>(gemm_geometry(t, f32_a).shared_bytes());
    least_bytes = std::min(least_bytes, bytes);
    if (bytes > shared_limit) continue;
    const double cycles = gemm_cycles(t, f32_a, nt, od, id, n_sm);
    if (cycles < best_cycles) best = t, best_cycles = cycles;
  }
  if (best.bm != 0) return best;
  const std::string wanted =
      fmt::format("MINFER_GEMM_TM={} MINFER_GEMM_KS={} (0: any), A in {}", tm, ks, f32_a ? "f32" : "f16");
  if (least_bytes == std::numeric_limits<size_t>::max()) {
    throw Error(ExitCode::kUsage, fmt::format("gemm: no tile for {}", wanted));
  }
  throw Error(ExitCode::kDevice,
              fmt::format("gemm: needs {} bytes of shared memory a block, {} available; {}", least_bytes,
                          shared_limit, wanted));
}

// Of parts that take equally long, as where memory is the bound, the fewest.
int gemm_parts(int od, int id) {
  constexpr double kBytesAClock = 19.6;  // of an SM: 4.39 TB/s, 132 of them, 1.7 GHz
  constexpr int kLeastLength = 6 * kGemmSplitTile.ks;
  constexpr double kGain = 0.9;  // less than that is not worth an order of its own
  const GemmTile& t = kGemmSplitTile;
  const GemmTile whole = gemm_tile(kMaxGemmSplitRows, od, id);
  if (switch_number("MINFER_GEMM_TM", 1, 1024, 0) != 0 || switch_number("MINFER_GEMM_KS", 1, 1024, 0) != 0)
    return 1;
  const int n_sm = multiprocessors(), n_tiles = ceil_div(od, t.tm);
  const double memory = 2.0 * od * id / (kBytesAClock * n_sm);
  int best = 1;
  double best_cycles = kGain * gemm_cycles(whole, false, kMaxGemmSplitRows, od, id, n_sm);
  for (int n = 2; n <= kMaxGemmParts && n_tiles <= kMaxGemmPartBlocks / n; ++n) {
    const int length = gemm_part_length(id, n);
    if (length < kLeastLength || (n - 1) * length >= id) continue;
    const double adding_up = 2500 + n * t.bm * t.tm * sizeof(float) / 32.0;  // a block, at 32 bytes a clock
    const double c = std::max(memory, cycles(t, false, int64_t{n_tiles} * n, length, n_sm)) + adding_up;
    if (c < best_cycles) best = n, best_cycles = c;
  }
  return best;
}

}  // namespace minfer::cu
