#include "core/reference/ops.h"

#include <algorithm>
#include <array>
#include <cfloat>
#include <cmath>

namespace minfer {
namespace {

// Eight partial sums: no chain of dependent additions, and an order that the length alone decides.
double sum_of_squares(const float* x, int32_t n) {
  std::array<double, 8> sums{};
  int32_t i = 0;
  for (; i + 8 <= n; i += 8) {
    for (int32_t j = 0; j < 8; ++j) sums[j] += double{x[i + j]} * double{x[i + j]};
  }
  for (; i < n; ++i) sums[i % 8] += double{x[i]} * double{x[i]};
  return ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
}

void rmsnorm_row(const float* x, const float* weight, int32_t n, float eps, float* out) {
  const auto scale = static_cast<float>(1.0 / std::sqrt(sum_of_squares(x, n) / n + double{eps}));
  for (int32_t i = 0; i < n; ++i) out[i] = x[i] * scale * weight[i];
}

// scores [n] -> probabilities. exp in f32, the sum in double.
void softmax(float* scores, int32_t n) {
  float max = scores[0];
  for (int32_t j = 1; j < n; ++j) max = std::max(max, scores[j]);
  double sum = 0;
  for (int32_t j = 0; j < n; ++j) {
    scores[j] = std::exp(scores[j] - max);
    sum += scores[j];
  }
  const auto inverse = static_cast<float>(1.0 / sum);
  for (int32_t j = 0; j < n; ++j) scores[j] *= inverse;
}

// Decodes rows [r0, r0 + n) of W into tile [n, padded(n_cols)].
void decode_tile(const Linear& w, int32_t r0, int32_t n, float* tile) {
  const int64_t stride = padded(w.n_cols);
  for (int32_t r = 0; r < n; ++r) {
    float* row = tile + r * stride;
    w.decode_row(r0 + r, row);
    std::fill(row + w.n_cols, row + stride, 0.0f);
  }
}

void add_bias(const Linear& w, int32_t r0, int32_t n_rows, int32_t n_tokens, float* out, int64_t out_stride) {
  if (w.bias.empty()) return;
  for (int32_t t = 0; t < n_tokens; ++t) {
    for (int32_t r = 0; r < n_rows; ++r) out[t * out_stride + r] += w.bias[r0 + r];
  }
}

}  // namespace

void rmsnorm(const Matrix& x, std::span<const float> weight, float eps, Matrix& out, Team& team) {
  out.resize(x.n_rows());
  team.each(x.n_rows(),
            [&](int64_t t, int) { rmsnorm_row(x.row(t), weight.data(), x.dim(), eps, out.row(t)); });
}

void rmsnorm_heads(Matrix& x, std::span<const float> weight, float eps, Team& team) {
  const auto head_dim = static_cast<int32_t>(weight.size());
  team.each(x.n_rows(), [&](int64_t t, int) {
    for (int32_t d = 0; d < x.dim(); d += head_dim) {
      rmsnorm_row(x.row(t) + d, weight.data(), head_dim, eps, x.row(t) + d);
    }
  });
}

// A thread decodes kTileRows rows of W and multiplies them with a block of tokens whose activations stay in
// its L2.
void linear(const Linear& w, const Matrix& x, float* out, int64_t out_stride, Team& team) {
  constexpr int64_t kBlockBytes = 512 << 10;
  constexpr int32_t kTasksPerThread = 8;  // enough of them to even out, each worth more than taking it costs
  const int64_t stride = padded(w.n_cols);
  const auto block =
      static_cast<int32_t>(std::clamp<int64_t>(kBlockBytes / (stride * int64_t{sizeof(float)}), 48, 512));
  const int32_t n_tiles = (w.n_rows + kTileRows - 1) / kTileRows;
  const int32_t tiles_per_task = std::max(1, n_tiles / (kTasksPerThread * team.n_threads()));
  const int32_t rows_per_task = tiles_per_task * kTileRows;
  for (int32_t t0 = 0; t0 < x.n_rows(); t0 += block) {
    const int32_t n_tokens = std::min(block, x.n_rows() - t0);
    team.each((n_tiles + tiles_per_task - 1) / tiles_per_task, [&](int64_t task, int thread) {
      const auto begin = static_cast<int32_t>(task) * rows_per_task;
      const int32_t end = std::min(begin + rows_per_task, w.n_rows);
      for (int32_t r0 = begin; r0 < end; r0 += kTileRows) {
        const int32_t n_rows = std::min(kTileRows, end - r0);
        float* tile_out = out + t0 * out_stride + r0;
        decode_tile(w, r0, n_rows, team.tile(thread));
        team.kernels().matmul_tile(team.tile(thread), n_rows, x.row(t0), x.stride(), n_tokens,
                                   static_cast<int>(stride), tile_out, out_stride);
        add_bias(w, r0, n_rows, n_tokens, tile_out, out_stride);
      }
    });
  }
}

void linear(const Linear& w, const Matrix& x, Matrix& out, Team& team) {
  out.resize(x.n_rows());
  linear(w, x, out.row(0), out.stride(), team);
}

void rope(const RopeTable& table, const Matrix& cos_sin, int32_t head_dim, Matrix& x, Team& team) {
  team.each(x.n_rows(), [&](int64_t t, int) {
    for (int32_t d = 0; d < x.dim(); d += head_dim) table.rotate(x.row(t) + d, cos_sin.row(t));
  });
}

void store_kv(std::span<const Row> rows, int32_t layer, const Matrix& k, const Matrix& v, KvCache& kv,
              Team& team) {
  team.each(static_cast<int64_t>(rows.size()), [&](int64_t t, int) {
    const Row& row = rows[static_cast<size_t>(t)];
    kv.store(row.seq, layer, row.pos, k.row(t), v.row(t));
  });
}

void attention(std::span<const Row> rows, int32_t layer, const HParams& h, const KvCache& kv, const Matrix& q,
               Matrix& out, Team& team) {
  out.resize(q.n_rows());
  const float scale = 1.0f / std::sqrt(static_cast<float>(h.head_dim));
  const auto dim = static_cast<int>(padded(h.head_dim));
  team.each(static_cast<int64_t>(rows.size()) * h.n_head, [&](int64_t i, int thread) {
    const int64_t t = i / h.n_head;
    const auto head = static_cast<int32_t>(i % h.n_head);
    const int32_t kv_head = head / h.n_group();
    const Row& row = rows[static_cast<size_t>(t)];
    const int32_t n_pos = row.pos + 1;
    float* scores = team.scores(thread);
    float* sum = team.tile(thread);  // [dim]
    team.kernels().attention_scores(q.row(t) + head * h.head_dim, kv.keys(row.seq, layer, kv_head),
                                    h.head_dim, (n_pos + kKeyBlock - 1) / kKeyBlock, scale, scores);
    softmax(scores, n_pos);
    team.kernels().attention_values(scores, kv.values(row.seq, layer, kv_head), n_pos, dim, sum);
    std::copy_n(sum, h.head_dim, out.row(t) + head * h.head_dim);
  });
}

void swiglu(Matrix& gate, const Matrix& up, Team& team) {
  team.each(gate.n_rows(), [&](int64_t t, int) {
    float* g = gate.row(t);
    const float* u = up.row(t);
    for (int32_t i = 0; i < gate.dim(); ++i) g[i] = g[i] / (1.0f + std::exp(-g[i])) * u[i];
  });
}

void add(Matrix& x, const Matrix& y, Team& team) {
  team.each(x.n_rows(), [&](int64_t t, int) {
    float* to = x.row(t);
    const float* from = y.row(t);
    for (int32_t i = 0; i < x.dim(); ++i) to[i] += from[i];
  });
}

bool all_finite(std::span<const float> values) {
  bool finite = true;
  for (const float v : values) finite &= std::fabs(v) <= FLT_MAX;
  return finite;
}

}  // namespace minfer
