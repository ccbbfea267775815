// Private to the reference engine: its inner loops, compiled once for each instruction set.
#pragma once

#include <cstdint>

namespace minfer {

// Positions whose keys stand together (kv_cache.h): a multiple of every level's vector width.
inline constexpr int kKeyBlock = 16;
// Rows of activations and weights are padded with zeros to whole vectors of every level.
inline constexpr int kRowPad = 16;
// Weight rows that are decoded and multiplied together.
inline constexpr int kTileRows = 8;

struct ReferenceKernels {
  // out[t * out_stride + r] = sum over k of w[r * stride + k] * x[t * stride + k], r < n_rows <= kTileRows.
  // Each output is summed in an order that depends on n_k alone. n_k % kRowPad == 0.
  void (*matmul_tile)(const float* w, int n_rows, const float* x, int64_t x_stride, int n_tokens, int n_k,
                      float* out, int64_t out_stride);
  // scores[j] = scale * q . k_j for the positions j of n_blocks blocks; keys: [n_blocks, head_dim,
  // kKeyBlock].
  void (*attention_scores)(const float* q, const float* keys, int head_dim, int n_blocks, float scale,
                           float* scores);
  // out = sum over j < n_pos of p[j] * v_j; values: [n_pos, dim], out: [dim]; dim % kRowPad == 0.
  void (*attention_values)(const float* p, const float* values, int n_pos, int dim, float* out);
};

namespace base {
extern const ReferenceKernels kReferenceKernels;
}
#if defined(__x86_64__)
namespace avx2 {
extern const ReferenceKernels kReferenceKernels;
}
namespace avx512 {
extern const ReferenceKernels kReferenceKernels;
}
#endif

// Those for this machine (gguf/isa.h).
const ReferenceKernels& reference_kernels();

}  // namespace minfer
