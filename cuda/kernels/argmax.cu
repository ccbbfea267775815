// For each row of logits: the largest, its lowest id, its lead over the second largest, and whether all are
// finite.
//
// Tile:      stage one cuts a row into at most 64 chunks of whole steps of 1024 logits, one block of 256
// threads each
//            (152064 logits: 50 chunks of 3 steps); stage two is one warp a row over the row's chunks.
// Registers: a thread takes 4 consecutive logits a step, 4 steps in flight, in ascending order, and keeps the
// best, its id
//            and the second.
// Order:     (value, lowest id) and the second largest form a merge that is associative and commutative to
// the bit, so the
//            result does not depend on the cut; there are no atomics. Two launches and not a "last block
//            merges" counter: a counter needs scratch that was zeroed once, and an unzeroed one would leave
//            the old token, silently.
// Bytes:     4 n_vocab a row: 608 KB for 152064, mostly out of L2 where the head has just written it; 16 a
// chunk between
//            the stages. One row is latency: two launches, one load, 5 + 3 + 5 merge steps.
#include "cuda/kernels/argmax.h"

#include <math_constants.h>

#include <algorithm>

#include "cuda/device/reduce.h"
#include "cuda/device/rms.h"
#include "cuda/device/vec.h"
#include "cuda/runtime/align.h"
#include "cuda/runtime/check.h"

namespace minfer::cu {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWarpLanes;
constexpr int kStep = kThreads * 4;
constexpr int kBatch = 4;       // steps in flight a thread
constexpr int kMaxChunks = 64;  // two a lane in stage two
constexpr int kNoId = INT32_MAX;

// The two largest of a set of logits.
struct alignas(16) TopTwo {
  float best;
  int id;  // lowest among equals
  float second;
  int finite;

  static __device__ TopTwo of_nothing() { return {-CUDART_INF_F, kNoId, -CUDART_INF_F, 1}; }

  // Ids come in ascending order, so an equal value does not take the place of an earlier one. A NaN counts as
  // -inf.
  __device__ void take(float v, int i) {
    v = fmaxf(v, -CUDART_INF_F);
    second = fmaxf(second, fminf(v, best));
    id = v > best ? i : id;
    best = v > best ? v : best;
  }

  __device__ void merge(const TopTwo& other) {
    const bool theirs = (other.best > best) | ((other.best == best) & (other.id < id));
    second = fmaxf(fmaxf(second, other.second), theirs ? best : other.best);
    best = theirs ? other.best : best;
    id = theirs ? other.id : id;
    finite &= other.finite;
  }
};

// Merges over the first kLanes lanes (a power of two), into each of them; all 32 lanes call it.
template <int kLanes>
__device__ TopTwo warp_top_two(TopTwo t) {
#pragma unroll
  for (int step = kLanes / 2; step > 0; step /= 2) {
    TopTwo other;
    other.best = __shfl_xor_sync(0xffffffffu, t.best, step);
    other.id = __shfl_xor_sync(0xffffffffu, t.id, step);
    other.second = __shfl_xor_sync(0xffffffffu, t.second, step);
    other.finite = __shfl_xor_sync(0xffffffffu, t.finite, step);
    t.merge(other);
  }
  return t;
}

// Logits i .. i + 3, in one load (kAligned: the row begins on 16 bytes and `end` is a multiple of 4) or in
// four. Past `end` some logit before it is read instead: it changes no finite flag, the caller does not take
// it, and a load without a condition stands before the first use of the others.
template <bool kAligned>
__device__ float4 load_logits(const float* row, int i, int end) {
  if constexpr (kAligned) return load4(row + min(i, end - 4));
  return {row[min(i, end - 1)], row[min(i + 1, end - 1)], row[min(i + 2, end - 1)], row[min(i + 3, end - 1)]};
}

// 4 blocks an SM: asked for that, the compiler spends the registers that keep a batch of loads together.
// partials [n_rows, gridDim.y]; blockIdx.x is the row, blockIdx.y the chunk of `chunk` logits.
template <bool kAligned>
__global__ void __launch_bounds__(kThreads, 4)
    argmax_chunks_kernel(const ArgmaxArgs a, int chunk, TopTwo* __restrict__ partials) {
  __shared__ TopTwo warps[kWarps];
  const float* row = a.logits + int64_t{blockIdx.x} * a.n_vocab;
  const int first = blockIdx.y * chunk, end = min(first + chunk, a.n_vocab);

  const int end_used = min(end, a.n_vocab_used);

  TopTwo mine = TopTwo::of_nothing();
  for (int base = first + 4 * threadIdx.x; base < end; base += kBatch * kStep) {
    float4 v[kBatch];
#pragma unroll
    for (int b = 0; b < kBatch; ++b) v[b] = load_logits<kAligned>(row, base + b * kStep, end);
#pragma unroll
    for (int b = 0; b < kBatch; ++b) {
      const float logit[4] = {v[b].x, v[b].y, v[b].z, v[b].w};
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int i = base + b * kStep + j;
        mine.finite = is_finite(logit[j]) ? mine.finite : 0;
        mine.take(i < end_used ? logit[j] : -CUDART_INF_F, i);
      }
    }
  }

  const int lane = threadIdx.x % kWarpLanes, warp = threadIdx.x / kWarpLanes;
  mine = warp_top_two<kWarpLanes>(mine);
  if (lane == 0) warps[warp] = mine;
  __syncthreads();  // every warp's result is written before the first warp merges them
  if (warp != 0) return;
  mine = warp_top_two<kWarps>(warps[lane % kWarps]);
  if (lane == 0) partials[int64_t{blockIdx.x} * gridDim.y + blockIdx.y] = mine;
}

__global__ void __launch_bounds__(kWarpLanes)
    argmax_rows_kernel(const TopTwo* __restrict__ partials, int n_chunks, Choice* __restrict__ out) {
  const TopTwo* row = partials + int64_t{blockIdx.x} * n_chunks;
  const int lane = threadIdx.x;
  TopTwo top = lane < n_chunks ? row[lane] : TopTwo::of_nothing();
  if (lane + kWarpLanes < n_chunks) top.merge(row[lane + kWarpLanes]);
  top = warp_top_two<kWarpLanes>(top);
  if (lane != 0) return;
  if (top.id == kNoId) {
    out[blockIdx.x] = {-1, CUDART_NAN_F, CUDART_NAN_F, top.finite};
  } else {  // inf - inf is NaN, and -inf is no second
    const float margin = top.best == top.second ? 0.0f : top.best - top.second;
    out[blockIdx.x] = {top.id, top.best, margin, top.finite};
  }
}

}  // namespace

size_t argmax_scratch_bytes(int n_rows) {
  return static_cast<size_t>(n_rows) * kMaxChunks * sizeof(TopTwo);
}

void argmax(const ArgmaxArgs& a, cudaStream_t stream) {
  MINFER_REQUIRE("argmax", a.n_rows > 0 && a.n_vocab > 0 && a.n_vocab <= INT32_MAX - kMaxChunks * kStep);
  MINFER_REQUIRE("argmax", a.n_vocab_used > 0 && a.n_vocab_used <= a.n_vocab);
  MINFER_REQUIRE("argmax", a.logits != nullptr && a.out != nullptr && a.scratch != nullptr);
  MINFER_REQUIRE("argmax", aligned16(a.out, a.scratch));
  const int n_steps = (a.n_vocab + kStep - 1) / kStep;
  const int chunk = (n_steps + kMaxChunks - 1) / kMaxChunks * kStep;
  const int n_chunks = (a.n_vocab + chunk - 1) / chunk;
  auto* partials = static_cast<TopTwo*>(a.scratch);

  const dim3 grid(a.n_rows, n_chunks);
  if (a.n_vocab % 4 == 0 && aligned16(a.logits)) {
    argmax_chunks_kernel<true><<<grid, kThreads, 0, stream>>>(a, chunk, partials);
  } else {
    argmax_chunks_kernel<false><<<grid, kThreads, 0, stream>>>(a, chunk, partials);
  }
  check_launch("argmax");
  argmax_rows_kernel<<<a.n_rows, kWarpLanes, 0, stream>>>(partials, n_chunks, a.out);
  check_launch("argmax");
}

}  // namespace minfer::cu
