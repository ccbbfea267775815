// out[i] = f16(in[i]).
//
// Tile:      256 threads x 4 vectors of 4 floats = 4096 values a block.
// Registers: thread i owns vectors i, i + 256, i + 512, i + 768 of the block's, so that every load and store
// of a warp is
//            contiguous (512 and 256 bytes) and 64 bytes are in flight a thread.
// Bytes:     6 a value; 2048 x 3584 is 44 MB, 10 us at 4.39 TB/s.
#include "cuda/kernels/convert.h"

#include "cuda/device/vec.h"
#include "cuda/runtime/align.h"
#include "cuda/runtime/check.h"

namespace minfer::cu {
namespace {

constexpr int kThreads = 256;
constexpr int kVectors = 4;
constexpr int kTile = kThreads * kVectors * 4;

__global__ void __launch_bounds__(kThreads)
    convert_kernel(const float* __restrict__ in, half* __restrict__ out, int64_t n) {
  const int64_t first = int64_t{blockIdx.x} * kTile + 4 * threadIdx.x;
  float4 v[kVectors];
#pragma unroll
  for (int j = 0; j < kVectors; ++j) {
    const int64_t i = first + j * 4 * kThreads;
    if (i + 4 <= n) v[j] = load4(in + i);
  }
#pragma unroll
  for (int j = 0; j < kVectors; ++j) {
    const int64_t i = first + j * 4 * kThreads;
    if (i + 4 <= n) {
      store4(out + i, v[j]);
    } else {
      for (int64_t tail = i; tail < n; ++tail) out[tail] = __float2half_rn(in[tail]);
    }
  }
}

}  // namespace

void convert(const ConvertArgs& a, cudaStream_t stream) {
  MINFER_REQUIRE("convert", a.n > 0 && a.in != nullptr && a.out != nullptr);
  MINFER_REQUIRE("convert", aligned16(a.in) && aligned(8, a.out));
  const int64_t n_blocks = (a.n + kTile - 1) / kTile;
  MINFER_REQUIRE("convert", n_blocks <= INT32_MAX);
  convert_kernel<<<static_cast<unsigned>(n_blocks), kThreads, 0, stream>>>(a.in, a.out, a.n);
  check_launch("convert");
}

}  // namespace minfer::cu
