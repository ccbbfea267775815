// Rows of the embedding table, by id.
//
// Tile:  256 threads x 8 values of one row, two 16-byte stores a thread.
// Bytes: 4 written a value and what the table's type has (0.5 to 4) read; a 3584-row is 14 KB: all latency.
#include "cuda/kernels/embed.h"

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
    embed_kernel(const void* __restrict__ table, const int32_t* __restrict__ ids, float* __restrict__ out,
                 int n_cols, int blocks_per_row) {
  const int t = blockIdx.x / blocks_per_row;
  const int c = blockIdx.x % blocks_per_row * kThreads + threadIdx.x;
  if (c >= n_cols / 8) return;
  float v[8];
  Decoder<kType>::decode8(table, ids[t], n_cols, c, v);
  float* to = out + int64_t{t} * n_cols + 8 * c;
  store4(to, make_float4(v[0], v[1], v[2], v[3]));
  store4(to + 4, make_float4(v[4], v[5], v[6], v[7]));
}

}  // namespace

void embed(const EmbedArgs& a, cudaStream_t stream) {
  const PackedMatrix& table = a.table;
  MINFER_REQUIRE("embed", table.data != nullptr && a.ids != nullptr && a.out != nullptr && a.n_tokens > 0);
  MINFER_REQUIRE("embed", aligned16(table.data, a.out));
  MINFER_REQUIRE("embed", packed_bytes(table.type, table.n_rows, table.n_cols) > 0);
  const int blocks_per_row = (table.n_cols / 8 + kThreads - 1) / kThreads;
  const int64_t n_grid = int64_t{a.n_tokens} * blocks_per_row;
  MINFER_REQUIRE("embed", n_grid <= INT_MAX);
  const bool known = dispatch_type(table.type, [&]<TensorType kType>() {
    embed_kernel<kType><<<static_cast<unsigned>(n_grid), kThreads, 0, stream>>>(table.data, a.ids, a.out,
                                                                                table.n_cols, blocks_per_row);
  });
  MINFER_REQUIRE("embed", known);
  check_launch("embed");
}

}  // namespace minfer::cu
