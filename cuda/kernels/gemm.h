// C[nt, od] = A[nt, id] * B[od, id]^T on tensor cores: f16 operands, f32 sums. Prefill.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace minfer::cu {

enum class GemmEpilogue {
  kStore,     // out_f32 = c + bias
  kResidual,  // out_f32 += c * scale
  kSwiglu,    // B's rows are gate and up in turn: out_f16[t, j] = silu(c[t, 2j]) * c[t, 2j + 1] * scale
};

// Few rows (up to kMaxGemmSplitRows): K in n parts that are summed side by side, and then in ascending order.
struct GemmSplit {
  int n = 1;                     // gemm_parts(od, id); 1: K whole
  float* partials = nullptr;     // [kGemmPartials] scratch, 16-byte aligned
  uint32_t* arrivals = nullptr;  // [kMaxGemmPartBlocks], 0 before the first launch, and left 0
};
inline constexpr int kMaxGemmSplitRows = 64, kMaxGemmParts = 16, kMaxGemmPartBlocks = 512;
inline constexpr size_t kGemmPartials = size_t{kMaxGemmPartBlocks} * 64 * 64;  // 8.4 MB
// The parts that pay on this card, 1 where none do: a function of the matrix, not of the rows.
int gemm_parts(int od, int id);

struct GemmArgs {
  const half* a = nullptr;       // [nt, id], 16-byte aligned; or
  const float* a_f32 = nullptr;  // [nt, id], converted in the kernel (MINFER_GEMM_AF32)
  const half* b = nullptr;       // [od, id], 16-byte aligned
  int nt = 0, od = 0, id = 0;    // nt, od >= 1; id % 8 == 0; od even for kSwiglu
  GemmEpilogue epilogue = GemmEpilogue::kStore;
  const float* bias = nullptr;  // [od] or null; kStore
  float* out_f32 = nullptr;     // [nt, od], 16-byte aligned
  half* out_f16 = nullptr;      // kSwiglu: [nt, od / 2], 16-byte aligned
  float scale = 1.0f;           // kResidual, kSwiglu
  GemmSplit split;              // with A in f16
};

// The tile: rows of A x rows of B (TM) x k step (KS).
struct GemmTile {
  int bm = 0, tm = 0, ks = 0;
  std::string describe() const;  // "128x256x32"
};
// The default of the shape's class (a model of waves over this card's SMs, fitted to measurements);
// MINFER_GEMM_TM=64|128|256 (192|224 with KS 64 and A in f16) and MINFER_GEMM_KS=32|64 override it.
GemmTile gemm_tile(int nt, int od, int id, bool f32_a = false);
bool gemm_wants_f32_a();  // MINFER_GEMM_AF32=1

// A row's products are summed in ascending k, 16 at a time, whatever the tile and whatever nt: C's row is the
// same bits for any of them, and, split, for any nt with the same number of parts. Error(kRuntime) where the
// tile is not one of gemm_tile.h's, or lacks A in f32.
void gemm(const GemmArgs& a, cudaStream_t stream);
void gemm(const GemmArgs& a, const GemmTile& tile, cudaStream_t stream);

}  // namespace minfer::cu
