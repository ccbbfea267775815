// The 32-bit address of something in shared memory, as PTX's .shared instructions take it, and loads through one.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace minfer::cu {

__device__ __forceinline__ uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

// Two floats at an 8-byte aligned address.
__device__ __forceinline__ float2 load_shared2(uint32_t address) {
  float2 v;
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(v.x), "=f"(v.y) : "r"(address) : "memory");
  return v;
}

}  // namespace minfer::cu
