// RMS normalisation. Zhang and Sennrich 2019, Root Mean Square Layer Normalization.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include <cstdint>

namespace minfer::cu {

inline constexpr int kRmsnormMaxColumns =
    16384;  // 1024 threads x 16 values, a row in the registers of one block

struct RmsnormArgs {
  const float* x = nullptr;       // [n_rows_in, n], 16-byte aligned
  const float* weight = nullptr;  // [n], 16-byte aligned
  const int32_t* rows = nullptr;  // [n_rows] which rows of x, or null for 0 .. n_rows-1
  half* out = nullptr;            // [n_rows, n], 8-byte aligned; or
  float* out_f32 = nullptr;       // [n_rows, n], 16-byte aligned (for a GEMM that converts A itself)
  int32_t* bad_layer =
      nullptr;  // [n_rows_in] or null: set to `layer` where it is < 0 and the row is not finite
  int layer = 0;
  int n_rows = 0, n = 0;  // n % 4 == 0, n <= kRmsnormMaxColumns
  float eps = 0;
};
// out = x / sqrt(mean(x^2) + eps) * weight; the sum in f32, in an order that depends on n alone.
// A row "is not finite" where its sum of squares is not: a NaN or Inf in it, or values past 1.8e19, whose
// squares leave f32. All of its outputs are NaN, never 0, so that the run is stopped with the layer's name. A
// product that leaves the f16 range becomes Inf.
void rmsnorm(const RmsnormArgs& a, cudaStream_t stream);

}  // namespace minfer::cu
