// The choice of a GEMM's tile: a scored model of waves, overridden by MINFER_GEMM_TM and MINFER_GEMM_KS.
#include "cuda/kernels/gemm_tile.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string_view>

#include "core/error.h"
#include "cuda/runtime/check.h"

namespace minfer::cu {
namespace {

int multiprocessors() {
  int device = 0, n = 0;
  check(cudaGetDevice(&device), "gemm");
  check(cudaDeviceGetAttribute(&n, cudaDevAttrMultiProcessorCount, device), "gemm");
  return n;
}

// The value of a switch, 0 where it is not set.
int switch_value(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return 0;
  char* end = nullptr;
  const long value = std::strtol(text, &end, 10);
  if (*end != '\0' || value <= 0 || value > 1024) {
    throw Error(ExitCode::kUsage, fmt::format("{}={}: not a tile size", name, text));
  }
  return static_cast<int>(value);
}

int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

}  // namespace

std::string GemmTile::describe() const {
  return fmt::format("{}x{}x{}", bm, tm, ks);
}

double gemm_cycles(const GemmTile& t, bool f32_a, int nt, int od, int id, int n_sm) {
  const GemmGeometry g = gemm_geometry(t, f32_a);
  // Of one k step of 16 in one tile, on a whole SM: products at 80 a clock (mma.sync's share of Hopper's
  // tensor peak), and bytes through shared memory at 128 a clock: what the warps read as fragments and what
  // arrives.
  const double products = t.bm * t.tm / 80.0;
  const int warp_rows = t.bm / g.warps_m + t.tm / g.warps_n;
  const double a_bytes = f32_a ? 2.0 : 1.0;
  const double shared = (g.warps_m * g.warps_n * warp_rows + t.bm * a_bytes + t.tm) * 32 / 128;
  const double busy = std::max(products, shared) + 0.1 * std::min(products, shared);
  const double steps = static_cast<double>(ceil_div(id, t.ks) * t.ks) / 16;
  // A block alone on its SM hides less of what it waits for; the pipeline's start and the epilogue come on
  // top.
  const double alone = g.blocks_per_sm == 1 ? 1.0 : 1.4;
  const double ends = 2000 + t.bm * t.tm / 8.0;

  const int64_t tiles = ceil_div(nt, t.bm) * ceil_div(od, t.tm);
  const int64_t wave = int64_t{n_sm} * g.blocks_per_sm;
  const int64_t last = ceil_div(tiles % wave, n_sm);  // blocks that share an SM in the last wave
  const auto round = [&](int64_t blocks) {
    return blocks == 0 ? 0.0 : std::max(static_cast<double>(blocks), alone) * busy * steps + ends;
  };
  return static_cast<double>(tiles / wave) * round(g.blocks_per_sm) + round(last);
}

bool gemm_wants_f32_a() {
  const char* text = std::getenv("MINFER_GEMM_AF32");
  return text != nullptr && std::string_view(text) == "1";
}

GemmTile gemm_tile(int nt, int od, int id, bool f32_a) {
  const int tm = switch_value("MINFER_GEMM_TM"), ks = switch_value("MINFER_GEMM_KS");
  const int n_sm = multiprocessors();
  const size_t shared_limit = shared_memory_limit();
  GemmTile best;
  double best_cycles = std::numeric_limits<double>::infinity();
  for (const GemmTile& t : kGemmTiles) {
    if ((tm != 0 && t.tm != tm) || (ks != 0 && t.ks != ks) || (f32_a && !gemm_takes_f32_a(t))) continue;
    if (static_cast<size_t>(gemm_geometry(t, f32_a).shared_bytes()) > shared_limit) continue;
    const double cycles = gemm_cycles(t, f32_a, nt, od, id, n_sm);
    if (cycles < best_cycles) best = t, best_cycles = cycles;
  }
  if (best.bm == 0) {
    throw Error(
        ExitCode::kDevice,
        fmt::format("gemm: no tile for MINFER_GEMM_TM={} MINFER_GEMM_KS={} (0: any), A in {}, in {} bytes of "
                    "shared memory a block",
                    tm, ks, f32_a ? "f32" : "f16", shared_limit));
  }
  return best;
}

}  // namespace minfer::cu
