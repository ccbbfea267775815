// Private to the reference engine: the model's weights, matrices as they are in the file, vectors decoded to
// f32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/tensor_map.h"
#include "gguf/dequantize.h"

namespace minfer {

// y = W x + b.
struct Linear {
  const std::byte* blocks = nullptr;  // [n_rows, n_cols], in the file's memory
  size_t row_bytes = 0;
  int32_t n_rows = 0;
  int32_t n_cols = 0;
  gguf::DequantizeFn decode = nullptr;
  std::vector<float> bias;  // [n_rows], or empty

  // Decodes row i into out [n_cols].
  void decode_row(int64_t i, float* out) const {
    decode(blocks + static_cast<size_t>(i) * row_bytes, out, static_cast<size_t>(n_cols));
  }
};

struct LayerWeights {
  std::vector<float> attn_norm;  // [n_embd]
  Linear q, k, v, o;
  std::vector<float> q_norm, k_norm;  // [head_dim], or empty
  std::vector<float> ffn_norm;        // [n_embd]
  Linear gate, up, down;
};

struct ModelWeights {
  Linear token_embd;  // its rows are the embeddings
  std::vector<LayerWeights> layers;
  std::vector<float> output_norm;   // [n_embd]
  Linear output;                    // the head
  std::vector<float> rope_factors;  // [n_rot / 2], or empty

  // The file must outlive the weights. Throws Error(kModelFile).
  static ModelWeights load(const gguf::Reader& file, const HParams& hparams);
};

}  // namespace minfer
