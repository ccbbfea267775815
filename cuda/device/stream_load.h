// Loads past L1.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace minfer::cu {

// Data that is read once: L1 is left to what is read again. Volatile, so that the loads stand where they are
// written, ahead of the products that hide them.
__device__ __forceinline__ uint4 stream_load_16(const void* p) {
  uint4 v;
  asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(p));
  return v;
}

__device__ __forceinline__ uint2 stream_load_8(const void* p) {
  uint2 v;
  asm volatile("ld.global.L1::no_allocate.v2.u32 {%0, %1}, [%2];" : "=r"(v.x), "=r"(v.y) : "l"(p));
  return v;
}

// A word that is needed early: the compiler would move a plain load down to its first use.
__device__ __forceinline__ int32_t load_now(const int32_t* p) {
  int32_t v;
  asm volatile("ld.global.s32 %0, [%1];" : "=r"(v) : "l"(p));
  return v;
}

// From L2, where other blocks' results are; L1 may hold older bytes.
__device__ __forceinline__ float4 l2_load4(const float* p) {
  float4 v;
  asm volatile("ld.global.cg.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "l"(p)
               : "memory");
  return v;
}

}  // namespace minfer::cu
