// f32 -> f16.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include <cstdint>

namespace minfer::cu {

struct ConvertArgs {
  const float* in = nullptr;  // [n], 16-byte aligned
  half* out = nullptr;        // [n], 8-byte aligned
  int64_t n = 0;
};
// Rounds to nearest even, subnormals kept; what leaves the f16 range becomes Inf, NaN stays NaN.
void convert(const ConvertArgs& a, cudaStream_t stream);

}  // namespace minfer::cu
