// Sums over lanes and threads in a fixed order: the same bits at every run.
#pragma once

namespace minfer::cu {

inline constexpr int kWarpLanes = 32;

// The sum over each aligned group of kLanes lanes (a power of two), in every lane of the group. All 32 lanes
// call it. Butterfly: a step adds the same two numbers in both partners, so every lane ends with the same
// bits.
template <int kLanes = kWarpLanes>
__device__ inline float warp_sum(float v) {
#pragma unroll
  for (int step = kLanes / 2; step > 0; step /= 2) v += __shfl_xor_sync(0xffffffffu, v, step);
  return v;
}

// The sum over the block, in every thread. blockDim.x is a multiple of 32, at most 1024. `partials` is 32
// floats of shared memory; a second call needs a __syncthreads() between the two, since the first's readers
// may lag.
__device__ inline float block_sum(float v, float* partials) {
  const int lane = threadIdx.x % kWarpLanes, warp = threadIdx.x / kWarpLanes;
  const int n_warps = blockDim.x / kWarpLanes;
  v = warp_sum(v);
  if (n_warps == 1) return v;
  if (lane == 0) partials[warp] = v;
  __syncthreads();  // every warp's partial is written before any warp adds them up
  return warp_sum(lane < n_warps ? partials[lane] : 0.0f);
}

}  // namespace minfer::cu
