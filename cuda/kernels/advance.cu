#include "cuda/kernels/advance.h"

#include "cuda/runtime/check.h"

namespace minfer::cu {
namespace {

__global__ void advance_kernel(AdvanceArgs a) {
  const int t = static_cast<int>(threadIdx.x);
  if (t >= a.n_rows) return;
  // An id of -1 would read outside the embedding table; the row's finite flag stops the run.
  a.ids[t] = max(a.choices[t].id, 0);
  a.pos[t] += 1;
}

}  // namespace

void advance(const AdvanceArgs& a, cudaStream_t stream) {
  MINFER_REQUIRE("advance", a.n_rows > 0 && a.n_rows <= 1024);
  const int n_threads = (a.n_rows + 31) / 32 * 32;
  advance_kernel<<<1, n_threads, 0, stream>>>(a);
  check_launch("advance");
}

}  // namespace minfer::cu
