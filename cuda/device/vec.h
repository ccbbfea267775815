// One vector load or store a function. Addresses are multiples of the vector's size.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

namespace minfer::cu {

__device__ inline float4 load4(const float* p) {
  return *reinterpret_cast<const float4*>(p);
}
__device__ inline float2 load2(const float* p) {
  return *reinterpret_cast<const float2*>(p);
}

// Rounds to nearest even; what leaves the f16 range becomes infinite, so that it is seen downstream.
__device__ inline uint32_t pack_half2(float low, float high) {
  const __half2_raw raw = __floats2half2_rn(low, high);
  return static_cast<uint32_t>(raw.x) | static_cast<uint32_t>(raw.y) << 16;
}

__device__ inline void store4(float* p, float4 v) {
  *reinterpret_cast<float4*>(p) = v;
}
__device__ inline void store4(half* p, float4 v) {
  *reinterpret_cast<uint2*>(p) = make_uint2(pack_half2(v.x, v.y), pack_half2(v.z, v.w));
}
__device__ inline void store2(half* p, float2 v) {
  *reinterpret_cast<uint32_t*>(p) = pack_half2(v.x, v.y);
}

}  // namespace minfer::cu
