// Private to the reference engine: the operations of a layer, one function each. Every output value is
// computed in an order that depends on the model alone: not on the other rows, nor on the number of threads.
#pragma once

#include <cstdint>
#include <span>

#include "core/batch.h"
#include "core/reference/kv_cache.h"
#include "core/reference/matrix.h"
#include "core/reference/rope_table.h"
#include "core/reference/team.h"
#include "core/reference/weights.h"

namespace minfer {

// out = x / sqrt(mean(x^2) + eps) * weight, a row at a time. Zhang and Sennrich 2019, Root Mean Square Layer
// Norm.
void rmsnorm(const Matrix& x, std::span<const float> weight, float eps, Matrix& out, Team& team);
// The same in place for every head of a row.
void rmsnorm_heads(Matrix& x, std::span<const float> weight, float eps, Team& team);

// out[t] = W x[t] + b; out: [n_rows of x, rows of W], out_stride floats a row.
void linear(const Linear& w, const Matrix& x, float* out, int64_t out_stride, Team& team);
void linear(const Linear& w, const Matrix& x, Matrix& out, Team& team);

// Turns every head of every row; cos_sin: [n_rows, n_pairs, 2].
void rope(const RopeTable& table, const Matrix& cos_sin, int32_t head_dim, Matrix& x, Team& team);

// Keys and values of the rows into their sequences.
void store_kv(std::span<const Row> rows, int32_t layer, const Matrix& k, const Matrix& v, KvCache& kv,
              Team& team);

// out = softmax(q K^T / sqrt(head_dim)) V over the positions up to each row's own. Vaswani et al. 2017; with
// fewer KV heads than query heads, Ainslie et al. 2023, GQA.
void attention(std::span<const Row> rows, int32_t layer, const HParams& hparams, const KvCache& kv,
               const Matrix& q, Matrix& out, Team& team);

// gate = silu(gate) * up. Shazeer 2020, GLU Variants Improve Transformer.
void swiglu(Matrix& gate, const Matrix& up, Team& team);

// x += y.
void add(Matrix& x, const Matrix& y, Team& team);

bool all_finite(std::span<const float> values);

}  // namespace minfer
