// RMS normalisation. Zhang and Sennrich 2019, Root Mean Square Layer Normalization.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include <cstdint>

namespace minfer::cu {

struct RmsnormArgs {
  const float* x = nullptr;         // [n_rows_in, n], 16-byte aligned
  const float* weight = nullptr;    // [n]
  const int32_t* rows = nullptr;    // [n_rows] which rows of x, or null for 0 .. n_rows-1
  half* out = nullptr;              // [n_rows, n]; or
  float* out_f32 = nullptr;         // [n_rows, n] (for a GEMM that converts A itself)
  int32_t* bad_layer = nullptr;     // [n_rows_in] or null: set to `layer` where it is < 0 and the row is not finite
  int layer = 0;
  int n_rows = 0, n = 0;            // n % 4 == 0
  float eps = 0;
};
// out = x / sqrt(mean(x^2) + eps) * weight; the sum in f32, in an order that depends on n alone.
void rmsnorm(const RmsnormArgs& a, cudaStream_t stream);

}  // namespace minfer::cu
