// out[t, h, :] = sum_j softmax_j(scale * q[t, h, :] . k[j, :]) v[j, :] over keys j = 0 .. pos[t] of t's
// sequence.
//
// Tile:      one block of 8 warps a (split of the keys, group of up to 8 query heads of one KV head, row). A
//            warp takes 16 keys at a time, the block 128; the warps meet only at the end, in shared memory.
//            n_splits is what the heads allow; a row uses the first ceil(n_keys / chunk) of them, chunk =
//            max(128, n_keys / n_splits up to whole 16s); blocks launched for others leave at once.
// Products:  m16n8k16 with the cache as A and the heads as its 8 columns: S^T[16 keys, 8] = K q^T, O^T[D, 8]
//            += V^T P^T. k and v go from memory straight into A's registers, 16 bytes a load: which dims
//            stand for "k = 2p, 2p + 1" is free as long as q agrees, which keys stand for it is P's order,
//            and which dim is which row of V^T is free.
// Registers: lane = 4 g + p. k[2][D/32][4]: keys g and g + 8, dims 32 b + 8 p .. + 7. v[4][D/16]: keys 2p, 2p
//            + 1, 2p + 8, 2p + 9, dims 64 b + 8 g .. + 7 (the last 32 dims of D = 96: 4 g .. + 3).
//            o[D/16][4]: heads 2p and 2p + 1 of dims (word j of v, low), (same), (high), (high). State of
//            heads 2p, 2p + 1: largest score, this lane's share of the sum. 128 at D = 128, so that an SM
//            holds two blocks.
// Overlap:   the loads of a warp's next k are issued once q.k has used this one, those of v after P*V: 4 to 8
//            KB of a warp's bytes are always under way (D = 128), 64 to 128 KB an SM with two blocks.
// Ledger:    16 keys at D = 128: 8 KB for 16 mma, 32 PRMT, 6 ex2 a lane; about 280 instructions a warp.
//            131,071 keys, 4 KV heads: 268 MB, 61 us at 4.39 TB/s; the instructions take 10. Partials: n_head
//            * n_splits * (D + 2) f32.
// Order:     a warp adds its 16-key steps in ascending order, a block its warps, the combine the splits.
#include "cuda/kernels/flash_decode.h"

#include <algorithm>
#include <bit>
#include <string>

#include "core/error.h"
#include "cuda/device/arrive.h"
#include "cuda/device/exp2.h"
#include "cuda/device/mma.h"
#include "cuda/device/movmatrix.h"
#include "cuda/device/reduce.h"
#include "cuda/device/stream_load.h"
#include "cuda/device/vec.h"
#include "cuda/runtime/align.h"
#include "cuda/runtime/ceil_div.h"
#include "cuda/runtime/check.h"

namespace minfer::cu {
namespace {

constexpr int kWarps = 8, kThreads = 32 * kWarps;
constexpr int kGroup = 8;  // heads a block: the columns of an mma
constexpr int kWarpKeys = 16, kBlockKeys = kWarps * kWarpKeys;
constexpr int kTargetBlocks = 256, kMaxSplits = 128;  // blocks a row: about two an SM of the largest cards
constexpr float kLog2e = 1.44269504f;
// P is scaled by 2^10, which cancels in o / sum: f16 then keeps weights down to 6e-8 of the largest at full
// precision.
constexpr float kPExponent = 10.0f;
// The largest score of a head that has seen no key; any real one (|q.k| <= 256 * 65504^2 = 1.1e12) is far
// above.
constexpr float kNoScore = -1e30f;

template <int kD>
struct Shape {
  static constexpr int kDim = kD, kBlocks = kD <= 128 ? 2 : 1;
  static constexpr int kKBlocks = kD / 32;       // of 32 dims: 4 lanes x 16 bytes of a k row
  static constexpr int kPairs = kD / 16;         // pairs of dims a lane holds of a v row
  static constexpr int kWide = kD / 64;          // blocks of 64 dims: 8 lanes x 16 bytes of a v row
  static constexpr bool kNarrow = kD % 64 != 0;  // and one of 32: 8 lanes x 8 bytes
  static constexpr int kRow = kD + 4;  // of o in shared memory; 4 mod 32: float2 stores hit all banks
  static constexpr int kVectors =
      ceil_div(kD, 4 * 32);  // of four positions a lane, where a warp combines a head
  // q as B operands [kKBlocks, 32 lanes] of 16 bytes; o [kWarps, kGroup, kRow]; largest score and sum
  // [kWarps, kGroup].
  static constexpr int kQBytes = kKBlocks * 32 * 16, kOBytes = kWarps * kGroup * kRow * 4;
  static constexpr int kSharedBytes = kQBytes + kOBytes + kWarps * kGroup * 8;

  // The accumulators' order: position 16 j + 2 g + e is pair j of lane g's v, so this dim. Partials stand in
  // this order.
  static __device__ int dim(int position) {
    const int j = position / 16, g = position / 2 % 8, e = position % 2;
    return j < 4 * kWide ? j / 4 * 64 + 8 * g + 2 * (j % 4) + e
                         : kWide * 64 + 4 * g + 2 * (j - 4 * kWide) + e;
  }
};

// What a launch's heads decide. n_splits is a power of two, since blocks wait for a division.
struct Plan {
  int heads_per_kv, groups_per_kv, log2_splits;
  __host__ __device__ int n_splits() const { return 1 << log2_splits; }
};
Plan plan_of(int n_head, int n_head_kv) {
  const int per_kv = n_head / n_head_kv, groups_per_kv = ceil_div(per_kv, kGroup);
  const unsigned n_splits = std::clamp(kTargetBlocks / (n_head_kv * groups_per_kv), 1, kMaxSplits);
  return {per_kv, groups_per_kv, static_cast<int>(std::bit_width(n_splits)) - 1};
}

// The keys of a split: the same in every block, and a function of the row's length and the plan alone.
__host__ __device__ int chunk_of(int n_keys, const Plan& plan) {
  const int even = (n_keys + plan.n_splits() - 1) >> plan.log2_splits;
  const int whole = (even + kWarpKeys - 1) / kWarpKeys * kWarpKeys;
  return whole > kBlockKeys ? whole : kBlockKeys;
}

// The heads a block stands for.
struct Heads {
  int kv, first, n;
};
__device__ Heads heads_of(const Plan& plan, int group) {
  const int kv = plan.groups_per_kv == 1 ? group : group / plan.groups_per_kv;
  const int first = (group - kv * plan.groups_per_kv) * kGroup;
  return {kv, kv * plan.heads_per_kv + first, min(kGroup, plan.heads_per_kv - first)};
}

struct Partials {
  float* o;         // [n_tokens, n_head, n_splits, head_dim], dims in the accumulators' order
  float2* softmax;  // [n_tokens, n_head, n_splits]: largest score, sum
};
__device__ Partials partials_of(const FlashDecodeArgs& a, int n_splits) {
  const int64_t n = int64_t{a.n_tokens} * a.n_head * n_splits;
  return {a.partials, reinterpret_cast<float2*>(a.partials + n * a.head_dim)};
}

// Four positions of the accumulators' order from `position` on: two pairs of neighbouring dims.
template <typename S>
__device__ void store_out(half* out, int position, float4 o, float inverse) {
  store2(out + S::dim(position), {o.x * inverse, o.y * inverse});
  store2(out + S::dim(position + 2), {o.z * inverse, o.w * inverse});
}

// As B operands: head g (zeros where there is none), dims 32 b + 8 p .. + 7, in q[32 b + lane].
template <typename S>
__device__ __forceinline__ void load_q(uint4* q, const half* rows, int n_heads) {
  static_assert(S::kKBlocks * 32 <= kThreads);
  const int b = threadIdx.x / 32, g = threadIdx.x % 32 / 4, p = threadIdx.x % 4;
  if (b >= S::kKBlocks) return;
  q[threadIdx.x] =
      g < n_heads ? *reinterpret_cast<const uint4*>(rows + g * S::kDim + 32 * b + 8 * p) : uint4{};
}

// keys: key 0 of the sequence, this lane's chunk. Keys from `end` on read the last one: a number, whose
// weight will be 0.
template <typename S>
__device__ __forceinline__ void load_k(uint32_t (&k)[2][S::kKBlocks][4], const half* keys, int key, int end) {
  const int g = threadIdx.x % 32 / 4;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const half* row = keys + int64_t{min(key + g + 8 * i, end - 1)} * S::kDim;
#pragma unroll
    for (int b = 0; b < S::kKBlocks; ++b) {
      const uint4 v = stream_load_16(row + 32 * b);
      k[i][b][0] = v.x, k[i][b][1] = v.y, k[i][b][2] = v.z, k[i][b][3] = v.w;
    }
  }
}

template <typename S>
__device__ __forceinline__ void load_v(uint32_t (&v)[4][S::kPairs], const half* values, int key, int end) {
  const int lane = threadIdx.x % 32, g = lane / 4, p = lane % 4;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const half* row = values + int64_t{min(key + 2 * p + i % 2 + i / 2 * 8, end - 1)} * S::kDim;
#pragma unroll
    for (int b = 0; b < S::kWide; ++b) {
      const uint4 x = stream_load_16(row + 64 * b + 8 * g);
      v[i][4 * b] = x.x, v[i][4 * b + 1] = x.y, v[i][4 * b + 2] = x.z, v[i][4 * b + 3] = x.w;
    }
    if constexpr (S::kNarrow) {
      const uint2 x = stream_load_8(row + 64 * S::kWide + 4 * g);
      v[i][4 * S::kWide] = x.x, v[i][4 * S::kWide + 1] = x.y;
    }
  }
}

// s[0], s[1]: key g, heads 2p and 2p + 1; s[2], s[3]: key g + 8.
template <typename S>
__device__ __forceinline__ void score(float (&s)[4], const uint32_t (&k)[2][S::kKBlocks][4], const uint4* q) {
  s[0] = s[1] = s[2] = s[3] = 0.0f;
#pragma unroll
  for (int b = 0; b < S::kKBlocks; ++b) {
    const uint4 x = q[b * 32 + threadIdx.x % 32];
    const uint32_t low[4] = {k[0][b][0], k[1][b][0], k[0][b][1], k[1][b][1]};
    const uint32_t high[4] = {k[0][b][2], k[1][b][2], k[0][b][3], k[1][b][3]};
    mma_m16n8k16(s, low, x.x, x.y);
    mma_m16n8k16(s, high, x.z, x.w);
  }
}

// What a warp keeps of heads 2p and 2p + 1.
template <typename S>
struct State {
  float o[S::kPairs][4];
  float largest[2];  // q.k so far
  float sum[2];      // of this lane's p
};

// P^T as B operands, p = 2^(scale_log2e * (s - largest) + kPExponent); earlier sums are brought to the new
// largest. The difference comes first: of scores of 1e9, scale_log2e * s - scale_log2e * largest in one fused
// step would be off by whole powers of two. A NaN score is passed over by max and makes its p NaN.
template <typename S>
__device__ __forceinline__ void soften(uint32_t (&p)[2], State<S>& state, const float (&s)[4],
                                       float scale_log2e) {
  float weight[4], shrink[2];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    float largest = fmaxf(s[i], s[i + 2]);
#pragma unroll
    for (int step = 4; step < 32; step *= 2)
      largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, step));
    largest = fmaxf(largest, state.largest[i]);
    shrink[i] = fast_exp2((state.largest[i] - largest) * scale_log2e);
    state.largest[i] = largest;
    weight[i] = fast_exp2(fmaf(s[i] - largest, scale_log2e, kPExponent));
    weight[i + 2] = fast_exp2(fmaf(s[i + 2] - largest, scale_log2e, kPExponent));
    state.sum[i] = fmaf(state.sum[i], shrink[i], weight[i] + weight[i + 2]);
  }
  p[0] = transpose_8x8(pack_half2(weight[0], weight[1]));
  p[1] = transpose_8x8(pack_half2(weight[2], weight[3]));
#pragma unroll
  for (int j = 0; j < S::kPairs; ++j) {
#pragma unroll
    for (int i = 0; i < 4; ++i) state.o[j][i] *= shrink[i % 2];
  }
}

template <typename S>
__device__ __forceinline__ void add_values(State<S>& state, const uint32_t (&p)[2],
                                           const uint32_t (&v)[4][S::kPairs]) {
#pragma unroll
  for (int j = 0; j < S::kPairs; ++j) {
    const uint32_t a[4] = {__byte_perm(v[0][j], v[1][j], 0x5410), __byte_perm(v[0][j], v[1][j], 0x7632),
                           __byte_perm(v[2][j], v[3][j], 0x5410), __byte_perm(v[2][j], v[3][j], 0x7632)};
    mma_m16n8k16(state.o[j], a, p[0], p[1]);
  }
}

// The warp's keys of [start, end).
template <typename S>
__device__ __forceinline__ void attend(State<S>& state, const FlashDecodeArgs& a, const Heads& heads,
                                       int first_slot, int start, int end, uint4* q, float scale_log2e) {
  const int lane = threadIdx.x % 32;
  const int64_t kv_offset = (int64_t{heads.kv} * a.kv.n_slots + first_slot) * S::kDim;
  const half* keys = static_cast<const half*>(a.kv.k) + kv_offset + lane % 4 * 8;
  const half* values = static_cast<const half*>(a.kv.v) + kv_offset;
  uint32_t k[2][S::kKBlocks][4], v[4][S::kPairs];
  int key = start + static_cast<int>(threadIdx.x) / 32 * kWarpKeys;
  if (key < end) {
    load_k<S>(k, keys, key, end);
    load_v<S>(v, values, key, end);
  }
  load_q<S>(q, a.q + (int64_t{blockIdx.y} * a.n_head + heads.first) * S::kDim, heads.n);
  __syncthreads();  // q is in shared memory; the first k and v are under way meanwhile
  for (; key < end; key += kBlockKeys) {
    const bool more = key + kBlockKeys < end;
    float s[4];
    score<S>(s, k, q);
    if (more) load_k<S>(k, keys, key + kBlockKeys, end);
    if (key + lane / 4 >= end) s[0] = s[1] = -INFINITY;
    if (key + lane / 4 + 8 >= end) s[2] = s[3] = -INFINITY;
    uint32_t p[2];
    soften<S>(p, state, s, scale_log2e);
    add_values<S>(state, p, v);
    if (more) load_v<S>(v, values, key + kBlockKeys, end);
  }
}

// Leaves the warp's o, largest score and sum in shared memory.
template <typename S>
__device__ __forceinline__ void publish(const State<S>& state, float* o, float2* softmax) {
  const int lane = threadIdx.x % 32, g = lane / 4, p = lane % 4, warp = threadIdx.x / 32;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int head = warp * kGroup + 2 * p + i;
    float sum = state.sum[i];
#pragma unroll
    for (int step = 4; step < 32; step *= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (g == 0) softmax[head] = {state.largest[i], sum};
#pragma unroll
    for (int j = 0; j < S::kPairs; ++j) {
      *reinterpret_cast<float2*>(o + head * S::kRow + 16 * j + 2 * g) = {state.o[j][i], state.o[j][i + 2]};
    }
  }
}

// kSplits splits' o at this lane's positions, from split `first` on. Past the last split: the last again.
template <typename S, int kSplits>
__device__ __forceinline__ void load_partials(float4 (&y)[kSplits][S::kVectors], const float* o, int first,
                                              int used) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < kSplits; ++i) {
    const float* from = o + min(first + i, used - 1) * S::kDim;
#pragma unroll
    for (int j = 0; j < S::kVectors; ++j) {
      const int position = 4 * lane + 128 * j;
      y[i][j] = l2_load4(from + (position < S::kDim ? position : 0));
    }
  }
}

// Warp w: head w of the group, over the row's used splits in ascending order.
template <typename S>
__device__ void combine(const FlashDecodeArgs& a, const Heads& heads, int t, int n_splits, int used,
                        float scale_log2e) {
  constexpr int kBatch =
      16 / S::kVectors;  // splits whose o is under way at a time, the first ahead of all else
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (warp >= heads.n) return;
  const Partials partials = partials_of(a, n_splits);
  const int64_t row = int64_t{t} * a.n_head + heads.first + warp;
  const float2* softmax = partials.softmax + row * n_splits;
  const float* o = partials.o + row * n_splits * S::kDim;
  float4 y[kBatch][S::kVectors];
  load_partials<S>(y, o, 0, used);

  float2 x[kMaxSplits / 32];  // of splits lane, lane + 32 ...
  float largest = kNoScore, sum = 0;
#pragma unroll
  for (int i = 0; i < kMaxSplits / 32; ++i) {
    const int s = lane + 32 * i;
    x[i] = s < used ? __ldcg(softmax + s) : float2{-INFINITY, 0};  // its factor is 2^-inf = 0
  }
#pragma unroll
  for (const float2& part : x) largest = fmaxf(largest, part.x);
#pragma unroll
  for (int step = 16; step > 0; step /= 2)
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, step));
#pragma unroll
  for (float2& part : x) {
    part.x = fast_exp2((part.x - largest) * scale_log2e);
    sum = fmaf(part.x, part.y, sum);
  }
  sum = warp_sum(sum);

  float4 total[S::kVectors] = {};
#pragma unroll 1
  for (int first = 0; first < used; first += kBatch) {
    const float lane_factor = first < 32 ? x[0].x : first < 64 ? x[1].x : first < 96 ? x[2].x : x[3].x;
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      const float factor = __shfl_sync(0xffffffffu, lane_factor, (first + i) % 32);
#pragma unroll
      for (int j = 0; j < S::kVectors; ++j) {
        total[j].x = fmaf(factor, y[i][j].x, total[j].x), total[j].y = fmaf(factor, y[i][j].y, total[j].y);
        total[j].z = fmaf(factor, y[i][j].z, total[j].z), total[j].w = fmaf(factor, y[i][j].w, total[j].w);
      }
    }
    if (first + kBatch < used) load_partials<S>(y, o, first + kBatch, used);
  }
#pragma unroll
  for (int j = 0; j < S::kVectors; ++j) {
    const int position = 4 * lane + 128 * j;
    if (position < S::kDim) store_out<S>(a.out + row * S::kDim, position, total[j], 1.0f / sum);
  }
}

template <typename S>
__global__ void __launch_bounds__(kThreads, S::kBlocks)
    flash_decode_kernel(const FlashDecodeArgs a, const Plan plan, float scale_log2e) {
  extern __shared__ __align__(16) unsigned char shared[];
  uint4* q = reinterpret_cast<uint4*>(shared);
  float* o = reinterpret_cast<float*>(shared + S::kQBytes);
  float2* softmax = reinterpret_cast<float2*>(shared + S::kQBytes + S::kOBytes);
  const int t = blockIdx.y, split = blockIdx.z;
  const int n_keys = load_now(a.rows.pos + t) + 1, first_slot = load_now(a.rows.first_slot + t);
  const int chunk = chunk_of(n_keys, plan), start = split * chunk, end = min(start + chunk, n_keys);
  if (start >= end && split > 0) return;
  State<S> state = {};
  state.largest[0] = state.largest[1] = kNoScore;
  attend<S>(state, a, heads_of(plan, blockIdx.x), first_slot, start, end, q, scale_log2e);
  // Worked out again: the loop has no registers to keep them in.
  const int n_keys_again = load_now(a.rows.pos + t) + 1,
            used = ceil_div(n_keys_again, chunk_of(n_keys_again, plan));
  const Heads heads = heads_of(plan, blockIdx.x);
  const int64_t row = int64_t{t} * a.n_head + heads.first;  // of out and the partials: head 0 of the group
  publish<S>(state, o, softmax);
  __syncthreads();  // every warp has published before any thread adds them up

  const Partials partials = partials_of(a, plan.n_splits());
  for (int i = threadIdx.x; i < heads.n * S::kDim / 4; i += kThreads) {
    const int head = i / (S::kDim / 4), position = i % (S::kDim / 4) * 4;
    float largest = kNoScore, sum = 0;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) largest = fmaxf(largest, softmax[w * kGroup + head].x);
    float4 total = {0, 0, 0, 0};
#pragma unroll
    for (int w = 0; w < kWarps; ++w) {
      const float2 x = softmax[w * kGroup + head];
      const float4 y = load4(o + (w * kGroup + head) * S::kRow + position);
      const float factor = fast_exp2((x.x - largest) * scale_log2e);
      sum = fmaf(factor, x.y, sum);
      total.x = fmaf(factor, y.x, total.x), total.y = fmaf(factor, y.y, total.y);
      total.z = fmaf(factor, y.z, total.z), total.w = fmaf(factor, y.w, total.w);
    }
    if (used <= 1) {
      // No keys: 0. Not sum == 0, since scores of -inf alone are an error that must show (0 / 0 is NaN).
      store_out<S>(a.out + (row + head) * S::kDim, position, total, used <= 0 ? 0.0f : 1.0f / sum);
    } else {
      const int64_t to = (row + head) * plan.n_splits() + split;
      store4(partials.o + to * S::kDim + position, total);
      if (position == 0) partials.softmax[to] = {largest, sum};
    }
  }
  if (used <= 1 || a.arrivals == nullptr) return;

  __shared__ bool is_last;
  __syncthreads();  // every thread's partials are written before thread 0 tells the other blocks
  if (threadIdx.x == 0) {
    uint32_t* count = a.arrivals + int64_t{t} * a.n_head + blockIdx.x;  // 0 again after the last
    is_last = arrive_and_wrap(count, used) + 1 == static_cast<uint32_t>(used);
  }
  __syncthreads();  // is_last is written, and the partials of the blocks before this one can be seen
  if (is_last) combine<S>(a, heads, t, plan.n_splits(), used, scale_log2e);
}

template <typename S>
__global__ void __launch_bounds__(kThreads)
    flash_decode_combine_kernel(const FlashDecodeArgs a, const Plan plan, float scale_log2e) {
  const int t = blockIdx.y, n_keys = a.rows.pos[t] + 1, used = ceil_div(n_keys, chunk_of(n_keys, plan));
  if (used > 1) combine<S>(a, heads_of(plan, blockIdx.x), t, plan.n_splits(), used, scale_log2e);
}

template <typename S>
void launch(const FlashDecodeArgs& a, cudaStream_t stream) {
  allow_shared_memory(reinterpret_cast<const void*>(flash_decode_kernel<S>), S::kSharedBytes, "flash_decode");
  const Plan plan = plan_of(a.n_head, a.n_head_kv);
  MINFER_REQUIRE("flash_decode", a.n_splits >= 0 && a.n_splits <= plan.n_splits());
  // Splits last, so that the blocks that find no keys start after all the others.
  const dim3 grid(a.n_head_kv * plan.groups_per_kv, a.n_tokens,
                  a.n_splits > 0 ? a.n_splits : plan.n_splits());
  flash_decode_kernel<S><<<grid, kThreads, S::kSharedBytes, stream>>>(a, plan, a.scale * kLog2e);
  check_launch("flash_decode");
  if (a.arrivals == nullptr) {
    flash_decode_combine_kernel<S><<<dim3(grid.x, grid.y), kThreads, 0, stream>>>(a, plan, a.scale * kLog2e);
    check_launch("flash_decode");
  }
}

}  // namespace

size_t flash_decode_partials(int n_tokens, int n_head, int head_dim) {
  // The most splits that these heads can get: as if each group were a full one.
  const int n_splits = plan_of(n_head, ceil_div(n_head, kGroup)).n_splits();
  return size_t{1} * n_tokens * n_head * n_splits * (head_dim + 2);
}

int flash_decode_splits(int n_keys, int n_head, int n_head_kv) {
  return std::max(1, ceil_div(n_keys, chunk_of(n_keys, plan_of(n_head, n_head_kv))));
}

void flash_decode(const FlashDecodeArgs& a, cudaStream_t stream) {
  MINFER_REQUIRE("flash_decode", a.n_tokens > 0 && a.n_tokens <= 65535);
  MINFER_REQUIRE("flash_decode", a.n_head_kv > 0 && a.n_head > 0 && a.n_head % a.n_head_kv == 0);
  MINFER_REQUIRE("flash_decode", a.kv.n_slots > 0 && a.scale > 0);
  MINFER_REQUIRE("flash_decode",
                 a.rows.pos != nullptr && a.rows.first_slot != nullptr && a.partials != nullptr);
  MINFER_REQUIRE("flash_decode", aligned16(a.q, a.out, a.kv.k, a.kv.v, a.partials));
  switch (a.head_dim) {
    case 64:
      return launch<Shape<64>>(a, stream);
    case 96:
      return launch<Shape<96>>(a, stream);
    case 128:
      return launch<Shape<128>>(a, stream);
    case 256:
      return launch<Shape<256>>(a, stream);
  }
  throw Error(ExitCode::kDevice, "flash_decode: head dim " + std::to_string(a.head_dim) +
                                     " is not supported: 64, 96, 128 and 256 are");
}

}  // namespace minfer::cu
