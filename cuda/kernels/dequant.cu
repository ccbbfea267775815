// Packed blocks -> f16 rows.
//
// Tile:      256 threads x 8 values of one row: 2048 values, one 16-byte store a thread.
// Registers: thread i owns values [8i, 8i + 8) of its block's part of the row; scales come through L1, where
// the
//            threads of one quantization block meet.
// Bytes:     a q4_K value is 0.56 read and 2 written; 7.6 G values are 19.5 GB, 4.5 ms at 4.3 TB/s.
#include "cuda/kernels/dequant.h"

#include <climits>

#include "cuda/device/quant.h"
#include "cuda/device/vec.h"
#include "cuda/runtime/align.h"
#include "cuda/runtime/check.h"

namespace minfer::cu {
namespace {

constexpr int kThreads = 256;

template <TensorType kType>
__global__ void __launch_bounds__(kThreads)
    dequant_kernel(const void* __restrict__ in, half* __restrict__ out, int n_cols, int blocks_per_row,
                   int row_stride, int row_offset) {
  const int row = blockIdx.x / blocks_per_row;
  const int c = blockIdx.x % blocks_per_row * kThreads + threadIdx.x;
  if (c >= n_cols / 8) return;
  float v[8];
  Decoder<kType>::decode8(in, row, n_cols, c, v);
  const int64_t to = int64_t{row} * row_stride + row_offset;
  *reinterpret_cast<uint4*>(out + to * n_cols + 8 * c) = make_uint4(
      pack_half2(v[0], v[1]), pack_half2(v[2], v[3]), pack_half2(v[4], v[5]), pack_half2(v[6], v[7]));
}

}  // namespace

void dequant(const DequantArgs& a, cudaStream_t stream) {
  MINFER_REQUIRE("dequant", a.in.data != nullptr && a.out != nullptr && aligned16(a.in.data, a.out));
  MINFER_REQUIRE("dequant", a.row_offset >= 0 && a.row_offset < a.row_stride);
  MINFER_REQUIRE("dequant", packed_bytes(a.in.type, a.in.n_rows, a.in.n_cols) > 0);
  const int blocks_per_row = (a.in.n_cols / 8 + kThreads - 1) / kThreads;
  const int64_t n_grid = int64_t{a.in.n_rows} * blocks_per_row;
  MINFER_REQUIRE("dequant", n_grid <= INT_MAX);
  const bool known = dispatch_type(a.in.type, [&]<TensorType kType>() {
    dequant_kernel<kType><<<static_cast<unsigned>(n_grid), kThreads, 0, stream>>>(
        a.in.data, a.out, a.in.n_cols, blocks_per_row, a.row_stride, a.row_offset);
  });
  MINFER_REQUIRE("dequant", known);
  check_launch("dequant");
}

}  // namespace minfer::cu
