// Transposes an 8x8 f16 matrix across a warp's registers (sm_75 on).
#pragma once

#include <cstdint>

namespace minfer::cu {

// With g = lane / 4 and p = 2 (lane % 4): from elements (g, p) and (g, p + 1) to (p, g) and (p + 1, g). The
// first of a pair is in the low half.
__device__ __forceinline__ uint32_t transpose_8x8(uint32_t pair) {
  uint32_t out;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(out) : "r"(pair));
  return out;
}

}  // namespace minfer::cu
