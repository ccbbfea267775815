// How much device memory a model and its KV cache take, before anything is allocated.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "core/hparams.h"
#include "core/tensor_map.h"
#include "cuda/engine.h"

namespace minfer::cu {

// Where every matrix and every vector of the weights begins, in bytes.
inline constexpr uint64_t kWeightAlignment = 256;
constexpr uint64_t padded(uint64_t bytes) {
  return (bytes + kWeightAlignment - 1) / kWeightAlignment * kWeightAlignment;
}

// Bytes, with the padding between matrices and between vectors.
struct MemoryPlan {
  uint64_t blocks = 0;     // every matrix in its blocks
  uint64_t vectors = 0;    // norms, biases and rope's frequencies
  uint64_t f16_cache = 0;  // 0 where it is off
  uint64_t scratch = 0;    // the largest matrix in f16, where the cache is off
  uint64_t kv = 0;         // of n_kv_tokens
  uint64_t workspace = 0;
  uint64_t staging = 0;  // pieces of the file on their way, while loading
  int32_t n_kv_tokens = 0;
  bool use_f16_cache = false;

  uint64_t total() const { return blocks + vectors + f16_cache + scratch + kv + workspace; }
  uint64_t loading() const { return blocks + vectors + f16_cache + staging; }  // before KV and workspace
  uint64_t peak() const { return std::max(total(), loading()); }
  std::string describe() const;
};

// The f16 cache goes ahead of KV slots beyond the least; what is left is filled with these. Throws
// Error(kDevice) with needed and available, and what would fit.
MemoryPlan plan_memory(const HParams& hparams, const ModelTensors& tensors, const CudaOptions& options,
                       uint64_t free_bytes);

}  // namespace minfer::cu
