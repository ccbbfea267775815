// The scale of RMS normalisation, and what it is for a row that f32 cannot hold.
#pragma once

#include <math_constants.h>

namespace minfer::cu {

// False for NaN and both infinities.
__device__ inline bool is_finite(float v) {
  return fabsf(v) < CUDART_INF_F;
}

// 1 / sqrt(sum / n + eps). A sum of squares that is not finite (a NaN or Inf in the row, or values
// past 1.8e19, whose squares leave f32) gives NaN: 1 / sqrt(inf) would be 0 and turn a broken row into a
// harmless looking row of zeros.
__device__ inline float inverse_rms(float sum_of_squares, float one_over_n, float eps) {
  return is_finite(sum_of_squares) ? rsqrtf(fmaf(sum_of_squares, one_over_n, eps)) : CUDART_NAN_F;
}

}  // namespace minfer::cu
