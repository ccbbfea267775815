// Matrix times 1 to 8 activation rows, the matrix read from its 4-bit (or other) blocks: decode.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include "cuda/kernels/packed_matrix.h"

namespace minfer::cu {

inline constexpr int kGemvMaxRows = 8;

// What becomes of y = W x.
enum class GemvEpilogue {
  kStore,     // out_f32 = y + bias
  kResidual,  // out_f32 += y * scale
  kSwiglu,    // two matrices: out_f16 = silu(y0) * y1 * scale
};

// Up to three matrices that share x, so that q, k and v (of different types) are one launch. For kStore their
// outputs stand side by side in a row of out_f32: [n_tokens, sum of n_rows].
struct GemvArgs {
  PackedMatrix w[3];
  int n_matrices = 1;       // kSwiglu: 2 (gate, up), same shape and type; kResidual: 1
  const half* x = nullptr;  // [n_tokens, n_cols], 16-byte aligned
  int n_tokens = 0;         // 1 to kGemvMaxRows
  GemvEpilogue epilogue = GemvEpilogue::kStore;
  const float* bias = nullptr;  // [sum of n_rows] or null
  float* out_f32 = nullptr;     // kStore, kResidual
  half* out_f16 = nullptr;      // kSwiglu: [n_tokens, n_rows]
  float scale = 1.0f;
  // The kernel may start, and read weights, while those ahead of it in the stream still run (programmatic
  // dependent launch, sm_90 on). Only where none of them writes the weights: they must have been there before
  // the kernel just ahead began. A plain launch elsewhere, and where it does not pay: several tokens, types
  // that are not tiled.
  bool early = false;
};
// Sums in f32 in an order that depends on n_cols and n_rows alone, not on n_tokens or on what stands beside a
// row.
void gemv(const GemvArgs& a, cudaStream_t stream);

}  // namespace minfer::cu
