// Reads memory and keeps nothing: how fast a card reads at best.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace minfer::cu {

struct ReadAllArgs {
  const void* in = nullptr;  // `bytes` of zeroed memory, 16-byte aligned
  size_t bytes = 0;          // % 16 == 0
  uint32_t* sink = nullptr;  // [1], never written
};
void read_all(const ReadAllArgs& a, cudaStream_t stream);

}  // namespace minfer::cu
