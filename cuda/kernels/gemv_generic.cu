// y = W x for up to 8 rows of x, for every type: exact f32 weights, f32 sums.
//
// A warp owns one row of W (of gate and of up for SwiGLU); a lane decodes 8 values at a time, columns 8 *
// lane + 256 i, and multiplies them with those of each x, read as 16 bytes from L1. Eight sums a lane; one
// butterfly each at the end. Bytes: the row's blocks once. About 5 instructions a weight: bound by them on a
// fast card, not by memory.
#include "cuda/device/quant.h"
#include "cuda/device/reduce.h"
#include "cuda/kernels/gemv_parts.h"
#include "cuda/runtime/check.h"

namespace minfer::cu {
namespace {

constexpr int kWarps = 4;

template <TensorType kType>
__device__ void row_times_x(const void* w, int row, int n_cols, const half* __restrict__ x, int n_tokens,
                            float (&sum)[kGemvMaxRows]) {
#pragma unroll
  for (int t = 0; t < kGemvMaxRows; ++t) sum[t] = 0;
  for (int c = threadIdx.x % kWarpLanes; c < n_cols / 8; c += kWarpLanes) {
    float v[8];
    Decoder<kType>::decode8(w, row, n_cols, c, v);
#pragma unroll
    for (int t = 0; t < kGemvMaxRows; ++t) {
      if (t >= n_tokens) break;
      float f[8];
      Decoder<TensorType::kF16>::decode8(x, t, n_cols, c, f);
#pragma unroll
      for (int e = 0; e < 8; ++e) sum[t] = fmaf(v[e], f[e], sum[t]);
    }
  }
#pragma unroll
  for (int t = 0; t < kGemvMaxRows; ++t) {
    if (t < n_tokens) sum[t] = warp_sum(sum[t]);
  }
}

template <TensorType kType>
__global__ void __launch_bounds__(kWarps* kWarpLanes)
    gemv_generic_kernel(const void* __restrict__ w0,  // [n_rows, n_cols]
                        const void* __restrict__ w1,  // the same, or null
                        const half* __restrict__ x,   // [n_tokens, n_cols]
                        int n_rows, int n_cols, int n_tokens, int first,
                        const __grid_constant__ GemvOutput out) {
  const int row = blockIdx.x * kWarps + threadIdx.x / kWarpLanes;
  if (row >= n_rows) return;
  float gate[kGemvMaxRows] = {}, sum[kGemvMaxRows];
  row_times_x<kType>(w0, row, n_cols, x, n_tokens, sum);
  if (w1 != nullptr) {
#pragma unroll
    for (int t = 0; t < kGemvMaxRows; ++t) gate[t] = sum[t];
    row_times_x<kType>(w1, row, n_cols, x, n_tokens, sum);
  }
#pragma unroll
  for (int t = 0; t < kGemvMaxRows; ++t) {
    if (t < n_tokens && t == threadIdx.x % kWarpLanes) {
      gemv_emit(out, t, first + row, sum[t], w1 != nullptr ? gate[t] : gemv_addend(out, t, first + row));
    }
  }
}

}  // namespace

void gemv_generic(const GemvArgs& a, const PackedMatrix& w0, const PackedMatrix& w1, int first,
                  const GemvOutput& out, cudaStream_t stream) {
  const int n_grid = (w0.n_rows + kWarps - 1) / kWarps;
  const bool known = dispatch_type(w0.type, [&]<TensorType kType>() {
    gemv_generic_kernel<kType><<<n_grid, kWarps * kWarpLanes, 0, stream>>>(w0.data, w1.data, a.x, w0.n_rows,
                                                                           w0.n_cols, a.n_tokens, first, out);
  });
  MINFER_REQUIRE("gemv", known);
  check_launch("gemv");
}

}  // namespace minfer::cu
