// One thread an element, a row of blocks a row. 10 bytes an element, of a few rows: in L2, and bound by the
// launch.
#include "cuda/kernels/swiglu.h"

#include <cstdint>

#include "cuda/kernels/gemv_parts.h"
#include "cuda/runtime/ceil_div.h"
#include "cuda/runtime/check.h"

namespace minfer::cu {
namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads) swiglu_kernel(const SwigluArgs a) {
  const int j = blockIdx.x * kThreads + threadIdx.x;
  if (j >= a.n) return;
  const float* gate = a.gate_up + int64_t{blockIdx.y} * 2 * a.n + j;
  a.out[int64_t{blockIdx.y} * a.n + j] = __float2half_rn(silu(gate[0]) * gate[a.n] * a.scale);
}

}  // namespace

void swiglu(const SwigluArgs& a, cudaStream_t stream) {
  MINFER_REQUIRE("swiglu", a.n > 0 && a.n_rows > 0 && a.n_rows <= 65535);
  MINFER_REQUIRE("swiglu", a.gate_up != nullptr && a.out != nullptr);
  const dim3 grid(static_cast<unsigned>(ceil_div(a.n, kThreads)), static_cast<unsigned>(a.n_rows));
  swiglu_kernel<<<grid, kThreads, 0, stream>>>(a);
  check_launch("swiglu");
}

}  // namespace minfer::cu
