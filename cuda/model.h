// The model as it lies on the device: what the pipeline's products and norms read.
#pragma once

#include <cuda_fp16.h>

#include <vector>

#include "cuda/kernels/packed_matrix.h"

namespace minfer::cu {

// One product's weights: up to three matrices of the file that share their input, each with its own type.
struct FusedWeight {
  PackedMatrix parts[3];
  int n_parts = 0;
  bool interleaved = false;     // gate and up: their rows stand in turn in f16; else part after part
  const half* f16 = nullptr;    // [n_rows, n_cols] or null: no resident f16 cache
  const float* bias = nullptr;  // [n_rows] or null
  int n_rows = 0, n_cols = 0;   // of all parts together
};

struct LayerWeights {
  const float* attn_norm = nullptr;                  // [n_embd]
  FusedWeight qkv;                                   // rotated pairs adjacent
  const float *q_norm = nullptr, *k_norm = nullptr;  // [head_dim] in the rows' order, or null
  FusedWeight o;
  const float* ffn_norm = nullptr;  // [n_embd]
  FusedWeight gate_up;
  FusedWeight down;
};

struct Model {
  PackedMatrix token_embd;  // [n_vocab, n_embd]
  std::vector<LayerWeights> layers;
  const float* output_norm = nullptr;  // [n_embd]
  FusedWeight output;                  // [n_vocab, n_embd]
  const double* rope_freq = nullptr;   // [n_rot / 2] radians a position
  float rope_magnitude = 1.0f;
};

}  // namespace minfer::cu
