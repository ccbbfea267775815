// 2^x in one instruction.
#pragma once

namespace minfer::cu {

// Relative error 2^-22.5; results below 2^-126 are 0. -inf gives 0, NaN stays NaN. (exp2f keeps subnormal
// results, for three more instructions; a softmax has no use for them.)
__device__ __forceinline__ float fast_exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

}  // namespace minfer::cu
