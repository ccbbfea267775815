// out[t, j] = silu(gate[t, j]) * up[t, j] * scale, where no product does it: gate and up of different types.
// Shazeer 2020, GLU Variants Improve Transformer.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

namespace minfer::cu {

struct SwigluArgs {
  const float* gate_up = nullptr;  // [n_rows, 2 n]: a row's gates, then its ups
  half* out = nullptr;             // [n_rows, n]
  int n_rows = 0, n = 0;           // n_rows <= 65535
  float scale = 1.0f;
};
// Rounds to nearest even; what leaves the f16 range becomes Inf, NaN stays NaN.
void swiglu(const SwigluArgs& a, cudaStream_t stream);

}  // namespace minfer::cu
