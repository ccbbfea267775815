// Loads a model file's tensors into device memory.
#pragma once

#include <cstddef>
#include <vector>

#include "core/hparams.h"
#include "core/tensor_map.h"
#include "cuda/memory_plan.h"
#include "cuda/model.h"
#include "cuda/runtime/buffer.h"

namespace minfer::cu {

// A product's matrices in f16 as its GEMM reads them, into out [n_rows, n_cols].
void decode_fused(const FusedWeight& weight, half* out, cudaStream_t stream);

class Weights {
 public:
  // Allocates the blocks, vectors and f16 cache that the plan says and fills it. Throws Error(kDevice),
  // Error(kModelFile).
  Weights(const HParams& hparams, const ModelTensors& tensors, const MemoryPlan& plan, bool progress);
  const Model& model() const { return model_; }
  // f16 values of the largest matrix that is decoded into a scratch; 0 with a resident cache.
  size_t scratch_elements() const { return scratch_elements_; }

 private:
  class Builder;
  Model model_;
  DeviceBuffer<std::byte> blocks_;
  DeviceBuffer<half> f16_;
  DeviceBuffer<float> vectors_;
  DeviceBuffer<double> rope_freq_;
  size_t scratch_elements_ = 0;
};

}  // namespace minfer::cu
