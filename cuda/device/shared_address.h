// The 32-bit address of something in shared memory, as PTX's .shared instructions take it.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace minfer::cu {

__device__ __forceinline__ uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

}  // namespace minfer::cu
