// How much device memory a model and its KV cache take, before anything is allocated.
#pragma once

#include <cstdint>
#include <string>

#include "core/hparams.h"
#include "core/tensor_map.h"
#include "cuda/engine.h"

namespace minfer::cu {

struct MemoryPlan {
  uint64_t blocks = 0;     // every matrix in its blocks, and the vectors
  uint64_t f16_cache = 0;  // 0 where it is off
  uint64_t scratch = 0;    // the largest matrix in f16, where the cache is off
  uint64_t kv = 0;
  uint64_t workspace = 0;
  bool use_f16_cache = false;

  uint64_t total() const { return blocks + f16_cache + scratch + kv + workspace; }
  std::string describe() const;
};

// Throws Error(kDevice) with needed and available, and what would fit.
MemoryPlan plan_memory(const HParams& hparams, const ModelTensors& tensors, const CudaOptions& options,
                       uint64_t free_bytes);

}  // namespace minfer::cu
