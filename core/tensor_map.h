// The only place that knows how a GGUF file names a model's tensors: role -> name, shape, required or not.
#pragma once

#include <vector>

#include "core/hparams.h"
#include "gguf/reader.h"

namespace minfer {

// Null where the file has no such (optional) tensor. Shapes are [outer, inner] as the paper writes W x.
struct LayerTensors {
  const gguf::Tensor* attn_norm = nullptr;         // [n_embd]
  const gguf::Tensor* attn_q = nullptr;            // [n_head * head_dim, n_embd]
  const gguf::Tensor* attn_k = nullptr;            // [n_head_kv * head_dim, n_embd]
  const gguf::Tensor* attn_v = nullptr;            // [n_head_kv * head_dim, n_embd]
  const gguf::Tensor* attn_q_bias = nullptr;       // [n_head * head_dim], optional
  const gguf::Tensor* attn_k_bias = nullptr;       // [n_head_kv * head_dim], optional
  const gguf::Tensor* attn_v_bias = nullptr;       // [n_head_kv * head_dim], optional
  const gguf::Tensor* attn_q_norm = nullptr;       // [head_dim], qwen3
  const gguf::Tensor* attn_k_norm = nullptr;       // [head_dim], qwen3
  const gguf::Tensor* attn_output = nullptr;       // [n_embd, n_head * head_dim]
  const gguf::Tensor* attn_output_bias = nullptr;  // [n_embd], optional
  const gguf::Tensor* ffn_norm = nullptr;          // [n_embd]
  const gguf::Tensor* ffn_gate = nullptr;          // [n_ff, n_embd]
  const gguf::Tensor* ffn_up = nullptr;            // [n_ff, n_embd]
  const gguf::Tensor* ffn_down = nullptr;          // [n_embd, n_ff]
  const gguf::Tensor* ffn_gate_bias = nullptr;     // [n_ff], optional
  const gguf::Tensor* ffn_up_bias = nullptr;       // [n_ff], optional
  const gguf::Tensor* ffn_down_bias = nullptr;     // [n_embd], optional
};

struct ModelTensors {
  const gguf::Tensor* token_embd = nullptr;   // [n_vocab, n_embd]
  const gguf::Tensor* output_norm = nullptr;  // [n_embd]
  const gguf::Tensor* output = nullptr;       // [n_vocab, n_embd]; token_embd where the head is tied
  const gguf::Tensor* output_bias = nullptr;  // [n_vocab], optional
  const gguf::Tensor* rope_freqs = nullptr;  // [n_rot / 2], optional: each frequency is divided by its factor
  std::vector<LayerTensors> layers;

  // Throws Error(kModelFile) that names the tensor: missing, of another shape (both printed), or of a type
  // minfer does not decode. Tensors of the file that no role asks for are named in one warning.
  static ModelTensors read(const gguf::Reader& file, const HParams& hparams);
};

}  // namespace minfer
