// A model's hyper-parameters: read once from the file's keys, each bounded before anything uses it.
#pragma once

#include <cstdint>
#include <string>

#include "gguf/reader.h"

namespace minfer {

enum class RopePairing { kNorm, kNeox };  // pairs (2i, 2i+1), or (i, i + n_rot/2)
enum class RopeScaling { kNone, kLinear, kYarn };

struct HParams {
  std::string arch;              // general.architecture: llama, qwen2, qwen3
  std::string name;              // general.name, may be empty
  int32_t n_ctx_train = 0;       // <arch>.context_length
  int32_t n_embd = 0;            // <arch>.embedding_length
  int32_t n_layer = 0;           // <arch>.block_count
  int32_t n_ff = 0;              // <arch>.feed_forward_length
  int32_t n_head = 0;            // <arch>.attention.head_count
  int32_t n_head_kv = 0;         // <arch>.attention.head_count_kv, default n_head
  int32_t head_dim = 0;          // <arch>.attention.key_length (= value_length), default n_embd / n_head
  int32_t n_vocab = 0;           // rows of token_embd.weight
  float rms_eps = 0;             // <arch>.attention.layer_norm_rms_epsilon

  RopePairing rope_pairing = RopePairing::kNorm;
  int32_t n_rot = 0;             // <arch>.rope.dimension_count, default head_dim
  float rope_freq_base = 10000;  // <arch>.rope.freq_base
  RopeScaling rope_scaling = RopeScaling::kNone;
  float rope_scale = 1;          // <arch>.rope.scaling.factor: positions are divided by it
  int32_t n_ctx_orig = 0;        // <arch>.rope.scaling.original_context_length, default n_ctx_train
  float yarn_ext_factor = 1;     // the four of YaRN, defaulted as llama.cpp does
  float yarn_attn_factor = 1;
  float yarn_beta_fast = 32;
  float yarn_beta_slow = 1;

  bool has_qk_norm = false;      // qwen3

  int32_t q_dim() const { return n_head * head_dim; }
  int32_t kv_dim() const { return n_head_kv * head_dim; }
  int32_t n_group() const { return n_head / n_head_kv; }  // query heads a KV head

  // Throws Error(kModelFile) naming the key, its value and what is allowed.
  static HParams read(const gguf::Reader& file);
};

}  // namespace minfer
