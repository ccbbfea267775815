// The greedy choice, on the device.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace minfer::cu {

struct Choice {
  int32_t id;       // lowest id among equals; -1 where no logit is a number
  float max_logit;
  float margin;     // max_logit minus the second largest (0 where two are equal)
  int32_t finite;   // 1 where every one of the n_vocab logits is finite
};

struct ArgmaxArgs {
  const float* logits = nullptr;  // [n_rows, n_vocab]
  Choice* out = nullptr;          // [n_rows]
  int n_rows = 0, n_vocab = 0;
  int n_vocab_used = 0;           // only ids below it are chosen; all n_vocab are checked for NaN and Inf
  void* scratch = nullptr;        // argmax_scratch_bytes(n_rows)
};
size_t argmax_scratch_bytes(int n_rows);
void argmax(const ArgmaxArgs& a, cudaStream_t stream);

}  // namespace minfer::cu
