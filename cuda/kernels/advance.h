// The step from one decoded token to the next, on the device: the choice becomes the next id, every position moves on.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "cuda/kernels/argmax.h"

namespace minfer::cu {

struct AdvanceArgs {
  const Choice* choices = nullptr;  // [n_rows]
  int32_t* ids = nullptr;           // [n_rows] = choices[t].id, or 0 where nothing could be chosen
  int32_t* pos = nullptr;           // [n_rows] += 1
  int n_rows = 0;                   // 1 to 1024
};
void advance(const AdvanceArgs& a, cudaStream_t stream);

}  // namespace minfer::cu
