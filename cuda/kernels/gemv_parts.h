// What gemv.cu's two ways share: the kernels for tiled matrices (tensor cores) and for all others.
#pragma once

#include "cuda/kernels/gemv.h"

namespace minfer::cu {

// Where the results of one launch go.
struct GemvOutput {
  GemvEpilogue epilogue = GemvEpilogue::kStore;
  const float* bias = nullptr;  // [row_stride] or null
  float* out_f32 = nullptr;     // [n_tokens, row_stride]
  half* out_f16 = nullptr;      // [n_tokens, row_stride]
  int row_stride = 0;
  float scale = 1.0f;
};

#if defined(__CUDACC__)
// exp(-x) leaves the f16 range below x = -11, where silu(x) itself still fits: hence in f32.
__device__ inline float silu(float x) {
  return x / (1.0f + __expf(-x));
}

// What element (t, i) of the output adds to y = W x there: nothing, a bias, or what it was. Read early, it
// costs no time.
__device__ inline float gemv_addend(const GemvOutput& out, int t, int i) {
  if (out.epilogue == GemvEpilogue::kResidual) return out.out_f32[int64_t{t} * out.row_stride + i];
  return out.bias != nullptr ? out.bias[i] : 0.0f;
}

// Element (t, i) of the output. `beside`: for kSwiglu the first matrix's y, else gemv_addend.
__device__ inline void gemv_emit(const GemvOutput& out, int t, int i, float y, float beside) {
  const int64_t at = int64_t{t} * out.row_stride + i;
  if (out.epilogue == GemvEpilogue::kSwiglu) {
    out.out_f16[at] = __float2half_rn(silu(beside) * y * out.scale);
  } else {
    out.out_f32[at] = fmaf(y, out.scale, beside);  // kStore has no scale: 1
  }
}
#endif

// Whether gemv_tiles can take all matrices of a call together: tiled, and of one type or of q4_K and q6_K.
bool gemv_shares_launch(const GemvArgs& a);

// Such matrices. Their rows are elements [first_row, ...) of the output's rows.
void gemv_tiles(const GemvArgs& a, int first_row, const GemvOutput& out, cudaStream_t stream);

// One matrix (w0 alone), or gate and up, of any type. Its rows are elements [first, first + n_rows) of the
// output's rows.
void gemv_generic(const GemvArgs& a, const PackedMatrix& w0, const PackedMatrix& w1, int first,
                  const GemvOutput& out, cudaStream_t stream);

}  // namespace minfer::cu
