// The inner loops of the reference engine, compiled once for each instruction set
// (scripts/cmake/isa_sources.cmake) in a namespace of its own. No inline function of the standard library may
// be used here.
//
// matmul_tile: the lanes of a vector run over k, so a (row, token) pair owns one accumulator that is summed
// over its lanes at the end. A block of kMicroRows x kMicroTokens accumulators lives in registers: per step
// of k it loads kMicroRows + kMicroTokens vectors for kMicroRows * kMicroTokens multiply-adds. What shape a
// block has at the edges changes which pairs stand together, never the order inside a pair.
//
// attention_scores: the lanes run over positions, so no sum crosses lanes; attention_values: over the values
// of a head.
#include "core/reference/kernels.h"
#include "core/reference/lanes.h"

namespace minfer::MINFER_ISA_NAMESPACE {
namespace {

#if defined(__AVX512F__)
constexpr int kMicroTokens = 6;  // 24 accumulators of 32 registers
#elif defined(__AVX2__)
constexpr int kMicroTokens = 3;  // 12 of 16
#else
constexpr int kMicroTokens = 2;  // 8 of 16: a multiplication needs registers of its own
#endif
constexpr int kMicroRows = 4;

struct TileArgs {
  const float* w;
  const float* x;
  int64_t x_stride;
  int n_k;  // also the stride of w
  float* out;
  int64_t out_stride;
};

template <int kRows, int kTokens>
void micro_tile(const TileArgs& a, int r0, int t0) {
  const float* w = a.w + int64_t{r0} * a.n_k;
  const float* x = a.x + t0 * a.x_stride;
  Lanes sums[kTokens][kRows];
#pragma GCC unroll 8
  for (int t = 0; t < kTokens; ++t) {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) sums[t][r] = splat(0.0f);
  }
  for (int k = 0; k < a.n_k; k += kLanes) {
    Lanes wk[kRows];
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) wk[r] = load(w + int64_t{r} * a.n_k + k);
#pragma GCC unroll 8
    for (int t = 0; t < kTokens; ++t) {
      const Lanes xk = load(x + t * a.x_stride + k);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) sums[t][r] = multiply_add(wk[r], xk, sums[t][r]);
    }
  }
#pragma GCC unroll 8
  for (int t = 0; t < kTokens; ++t) {
    float* out = a.out + (t0 + t) * a.out_stride + r0;
    if constexpr (kRows % 4 == 0) {
#pragma GCC unroll 8
      for (int r = 0; r < kRows; r += 4) sum_lanes4(&sums[t][r], out + r);
    } else {
      for (int r = 0; r < kRows; ++r) out[r] = sum_lanes(sums[t][r]);
    }
  }
}

template <int kRows>
void micro_rows(const TileArgs& a, int r0, int n_tokens) {
  int t = 0;
  for (; t + kMicroTokens <= n_tokens; t += kMicroTokens) micro_tile<kRows, kMicroTokens>(a, r0, t);
  for (; t + 2 <= n_tokens; t += 2) micro_tile<kRows, 2>(a, r0, t);
  for (; t < n_tokens; ++t) micro_tile<kRows, 1>(a, r0, t);
}

void matmul_tile(const float* w, int n_rows, const float* x, int64_t x_stride, int n_tokens, int n_k,
                 float* out, int64_t out_stride) {
  const TileArgs args{w, x, x_stride, n_k, out, out_stride};
  int r = 0;
  if (n_tokens == 1) {  // eight chains of multiply-adds hide their latency where four do not
    for (; r + kTileRows <= n_rows; r += kTileRows) micro_tile<kTileRows, 1>(args, r, 0);
  }
  for (; r + kMicroRows <= n_rows; r += kMicroRows) micro_rows<kMicroRows>(args, r, n_tokens);
  for (; r < n_rows; ++r) micro_rows<1>(args, r, n_tokens);
}

// kBlocks blocks of positions at once: as many chains of multiply-adds as hide their latency.
template <int kBlocks>
void score_blocks(const float* q, const float* keys, int head_dim, float scale, float* scores) {
  constexpr int kVectors = kBlocks * kKeyBlock / kLanes;
  constexpr int kInBlock = kKeyBlock / kLanes;
  Lanes sums[kVectors];
#pragma GCC unroll 16
  for (int v = 0; v < kVectors; ++v) sums[v] = splat(0.0f);
  for (int d = 0; d < head_dim; ++d) {
    const Lanes qd = splat(q[d]);
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) {
      const int64_t at = (int64_t{v / kInBlock} * head_dim + d) * kKeyBlock + v % kInBlock * kLanes;
      sums[v] = multiply_add(qd, load(keys + at), sums[v]);
    }
  }
#pragma GCC unroll 16
  for (int v = 0; v < kVectors; ++v) store(scores + v * kLanes, sums[v] * splat(scale));
}

void attention_scores(const float* q, const float* keys, int head_dim, int n_blocks, float scale,
                      float* scores) {
  constexpr int kAtOnce = kLanes == 4 ? 2 : 4;
  const int64_t block = int64_t{head_dim} * kKeyBlock;
  int b = 0;
  for (; b + kAtOnce <= n_blocks; b += kAtOnce) {
    score_blocks<kAtOnce>(q, keys + b * block, head_dim, scale, scores + b * kKeyBlock);
  }
  for (; b < n_blocks; ++b) score_blocks<1>(q, keys + b * block, head_dim, scale, scores + b * kKeyBlock);
}

// Sums of 64 positions are summed again: over thousands of positions the error stays that of a short sum.
constexpr int kValueRun = 64;

template <int kVectors>
void sum_values(const float* p, const float* values, int n_pos, int dim, float* out) {
  Lanes total[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) total[v] = splat(0.0f);
  for (int j0 = 0; j0 < n_pos; j0 += kValueRun) {
    const int j1 = j0 + kValueRun < n_pos ? j0 + kValueRun : n_pos;
    Lanes run[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) run[v] = splat(0.0f);
    for (int j = j0; j < j1; ++j) {
      const Lanes pj = splat(p[j]);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        run[v] = multiply_add(pj, load(values + int64_t{j} * dim + v * kLanes), run[v]);
      }
    }
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) total[v] = total[v] + run[v];
  }
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) store(out + v * kLanes, total[v]);
}

void attention_values(const float* p, const float* values, int n_pos, int dim, float* out) {
  int d = 0;
  for (; d + 4 * kLanes <= dim; d += 4 * kLanes) sum_values<4>(p, values + d, n_pos, dim, out + d);
  for (; d < dim; d += kLanes) sum_values<1>(p, values + d, n_pos, dim, out + d);
}

}  // namespace

// `extern` in the header: the struct is constant data, so no code runs to set it up.
const ReferenceKernels kReferenceKernels{matmul_tile, attention_scores, attention_values};

}  // namespace minfer::MINFER_ISA_NAMESPACE
