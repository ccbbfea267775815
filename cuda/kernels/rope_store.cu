// One pass behind the q, k, v product: per head an optional RMS norm (q, k), the rotation of its first n_rot
// dims (q, k), f32 -> f16, and the store: q beside its row, k and v at their slot of the cache.
//
// Tile:      one block a token. A group of kLanes lanes owns a head; group g of G takes heads g, g + G, g +
// 2G, ... of
//            the n_head + 2 n_head_kv in the row, kBatch of them in flight.
// Registers: a lane owns kVectors vectors of kWidth dims (whole pairs) of each of its heads:
//              head_dim % 4 == 0, <= 64    16 lanes x 1 vector  x 4 dims
//              head_dim % 4 == 0, <= 128   32 lanes x 1 vector  x 4 dims
//              head_dim % 4 == 0, <= 256   32 lanes x 2 vectors x 4 dims
//              other even head_dim         32 lanes x 4 vectors x 2 dims
//            The same dims for all of its heads, so a lane reads its cosines and sines from shared memory
//            once.
// Angles:    thread i computes pair i of the token, once for all heads, while the first batch of loads is on
// its way. Bytes:     6 a value (4 read, 2 written); 2048 tokens x 36 heads x 128 are 57 MB, 13 us at 4.39
// TB/s.
#include "cuda/kernels/rope_store.h"

#include <math_constants.h>

#include <algorithm>

#include "cuda/device/reduce.h"
#include "cuda/device/rms.h"
#include "cuda/device/vec.h"
#include "cuda/runtime/align.h"
#include "cuda/runtime/check.h"

namespace minfer::cu {
namespace {

// 384 x 3 blocks an SM is a cap of 56 registers, and 4 blocks of the 288 threads that 36 heads take: 73 KB in
// flight, of the 26 KB that 4.4 TB/s at 0.8 us needs. 40 registers spill.
constexpr int kMaxThreads = 384;
constexpr int kMinBlocks = 3;

// cos and sin of pos * freq, times magnitude. The angle is reduced to (-pi, pi] in f64, in units of pi, where
// the reduction is exact: at 131,071 rad the product's own error is 2e-11. In f32, 1e-7 is left after the
// reduction.
__device__ float2 rotation(double freq, int pos, float magnitude) {
  constexpr double kOneOverPi = 0.318309886183790671537767526745;
  double half_turns = pos * (freq * kOneOverPi);
  half_turns -= 2.0 * rint(0.5 * half_turns);
  float sine, cosine;
  sincospif(static_cast<float>(half_turns), &sine, &cosine);
  return {cosine * magnitude, sine * magnitude};
}

template <int kWidth>
__device__ void load(const float* p, float (&v)[kWidth]) {
  if constexpr (kWidth == 4) {
    const float4 x = load4(p);
    v[0] = x.x, v[1] = x.y, v[2] = x.z, v[3] = x.w;
  } else {
    const float2 x = load2(p);
    v[0] = x.x, v[1] = x.y;
  }
}

template <int kWidth>
__device__ void store(half* p, const float (&v)[kWidth]) {
  if constexpr (kWidth == 4) {
    store4(p, {v[0], v[1], v[2], v[3]});
  } else {
    store2(p, {v[0], v[1]});
  }
}

// Where head h of token t goes, or null for a k or v without a place in the cache.
__device__ half* destination(const RopeStoreArgs& a, int t, int h, int64_t slot) {
  if (h < a.n_head) return a.q + (int64_t{t} * a.n_head + h) * a.head_dim;
  if (slot < 0 || slot >= a.kv.n_slots) return nullptr;
  const bool is_k = h < a.n_head + a.n_head_kv;
  half* arena = static_cast<half*>(is_k ? a.kv.k : a.kv.v);
  const int h_kv = h - a.n_head - (is_k ? 0 : a.n_head_kv);
  return arena + (int64_t{h_kv} * a.kv.n_slots + slot) * a.head_dim;
}

template <int kWidth, int kLanes, int kVectors, int kBatch, bool kNorms>
__global__ void __launch_bounds__(kMaxThreads, kMinBlocks)
    rope_store_kernel(const RopeStoreArgs a, float one_over_head_dim) {
  __shared__ __align__(16) float2 cos_sin[kRopeMaxHeadDim / 2];
  const int t = blockIdx.x;
  const int lane = threadIdx.x % kLanes, group = threadIdx.x / kLanes, n_groups = blockDim.x / kLanes;
  const int n_rotated = a.n_head + a.n_head_kv, n_heads = n_rotated + a.n_head_kv;
  const float* row = a.qkv + int64_t{t} * n_heads * a.head_dim;
  const int pos = a.rows.pos[t];
  const int64_t slot = int64_t{a.rows.first_slot[t]} + pos;
  const float q_factor = slot >= 0 && slot < a.kv.n_slots ? 1.0f : CUDART_NAN_F;  // a row without a place
  float turn[kVectors][kWidth];  // cos, sin of the lane's pairs

  // Uniform over the block: the shuffles below need whole warps.
  for (int first = 0; first < n_heads; first += n_groups * kBatch) {
    float value[kBatch][kVectors][kWidth] = {};
#pragma unroll
    for (int b = 0; b < kBatch; ++b) {
#pragma unroll
      for (int j = 0; j < kVectors; ++j) {
        const int h = first + b * n_groups + group, d = (lane + j * kLanes) * kWidth;
        if (h < n_heads && d < a.head_dim) load(row + h * a.head_dim + d, value[b][j]);
      }
    }

    if (first == 0) {
      for (int i = threadIdx.x; i < a.head_dim / 2; i += blockDim.x) {
        cos_sin[i] = i < a.n_rot / 2 ? rotation(a.freq[i], pos, a.magnitude) : make_float2(1.0f, 0.0f);
      }
      // Every pair's angle is written before any lane reads its own. Written once, so there is no second
      // wait.
      __syncthreads();
#pragma unroll
      for (int j = 0; j < kVectors; ++j) {
        const int d = (lane + j * kLanes) * kWidth;
        if (d < a.head_dim) load(&cos_sin[d / 2].x, turn[j]);
      }
    }

#pragma unroll
    for (int b = 0; b < kBatch; ++b) {
      const int h = first + b * n_groups + group;
      float scale = 1.0f;
      const float* norm = nullptr;
      if constexpr (kNorms) {
        norm = h < a.n_head ? a.q_norm : h < n_rotated ? a.k_norm : nullptr;
        float sum = 0;
#pragma unroll
        for (int j = 0; j < kVectors; ++j) {
#pragma unroll
          for (int i = 0; i < kWidth; ++i) sum = fmaf(value[b][j][i], value[b][j][i], sum);
        }
        // Also where a part of the warp has no norm or no head: a shuffle needs all lanes.
        sum = warp_sum<kLanes>(sum);
        if (norm != nullptr) scale = inverse_rms(sum, one_over_head_dim, a.eps);
      }
      if (h >= n_heads) continue;
      half* out = destination(a, t, h, slot);
      if (out == nullptr) continue;
#pragma unroll
      for (int j = 0; j < kVectors; ++j) {
        const int d = (lane + j * kLanes) * kWidth;
        if (d >= a.head_dim) continue;
        float(&v)[kWidth] = value[b][j];
        if (norm != nullptr) {
          float weight[kWidth];
          load(norm + d, weight);
#pragma unroll
          for (int i = 0; i < kWidth; ++i) v[i] *= scale * weight[i];
        }
        if (h < n_rotated) {
          const float extra = h < a.n_head ? q_factor : 1.0f;
#pragma unroll
          for (int i = 0; i < kWidth; i += 2) {
            const float x = v[i], y = v[i + 1], c = turn[j][i], s = turn[j][i + 1];
            v[i] = (x * c - y * s) * extra;
            v[i + 1] = (x * s + y * c) * extra;
          }
        }
        store(out + d, v);
      }
    }
  }
}

template <int kWidth, int kLanes, int kVectors, int kBatch>
void launch(const RopeStoreArgs& a, cudaStream_t stream) {
  const int n_heads = a.n_head + 2 * a.n_head_kv;
  const int n_groups = (n_heads + kBatch - 1) / kBatch;
  const int warps = (n_groups * kLanes + kWarpLanes - 1) / kWarpLanes;
  const int threads = std::min(warps * kWarpLanes, kMaxThreads);
  const float one_over_head_dim = 1.0f / static_cast<float>(a.head_dim);
  if (a.q_norm != nullptr || a.k_norm != nullptr) {
    rope_store_kernel<kWidth, kLanes, kVectors, kBatch, true>
        <<<a.n_tokens, threads, 0, stream>>>(a, one_over_head_dim);
  } else {
    rope_store_kernel<kWidth, kLanes, kVectors, kBatch, false>
        <<<a.n_tokens, threads, 0, stream>>>(a, one_over_head_dim);
  }
}

void check_args(const RopeStoreArgs& a) {
  MINFER_REQUIRE("rope_store", a.n_tokens > 0 && a.n_head > 0 && a.n_head_kv > 0 && a.kv.n_slots > 0);
  MINFER_REQUIRE("rope_store", a.head_dim > 0 && a.head_dim % 2 == 0 && a.head_dim <= kRopeMaxHeadDim);
  MINFER_REQUIRE("rope_store", a.n_rot >= 0 && a.n_rot % 2 == 0 && a.n_rot <= a.head_dim);
  MINFER_REQUIRE("rope_store", a.freq != nullptr || a.n_rot == 0);
  MINFER_REQUIRE("rope_store", a.rows.pos != nullptr && a.rows.first_slot != nullptr);
  MINFER_REQUIRE("rope_store", a.qkv != nullptr && a.q != nullptr && a.kv.k != nullptr && a.kv.v != nullptr);
  MINFER_REQUIRE("rope_store", aligned16(a.qkv, a.q_norm, a.k_norm, a.kv.k, a.kv.v) && aligned(8, a.q));
}

}  // namespace

void rope_store(const RopeStoreArgs& a, cudaStream_t stream) {
  check_args(a);
  if (a.head_dim % 4 != 0) {
    launch<2, 32, 4, 2>(a, stream);
  } else if (a.head_dim <= 64) {
    launch<4, 16, 1, 4>(a, stream);
  } else if (a.head_dim <= 128) {
    launch<4, 32, 1, 4>(a, stream);
  } else {
    launch<4, 32, 2, 2>(a, stream);
  }
  check_launch("rope_store");
}

}  // namespace minfer::cu
