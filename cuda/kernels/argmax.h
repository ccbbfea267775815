// The greedy choice, on the device.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace minfer::cu {

struct Choice {
  int32_t id;       // lowest id among equals; -1 where no usable logit is a number above -inf
  float max_logit;  // its logit; NaN for id -1
  float margin;  // max_logit minus the second largest (0 where two are equal, inf where it stands alone); NaN
                 // for id -1
  int32_t finite;  // 1 where every one of the n_vocab logits is finite
};

struct ArgmaxArgs {
  const float* logits = nullptr;  // [n_rows, n_vocab]; faster where 16-byte aligned and n_vocab % 4 == 0
  Choice* out = nullptr;          // [n_rows], 16-byte aligned
  int n_rows = 0, n_vocab = 0;
  int n_vocab_used =
      0;  // 1 .. n_vocab; only ids below it are chosen; all n_vocab are checked for NaN and Inf
  void* scratch = nullptr;  // argmax_scratch_bytes(n_rows), 16-byte aligned; what it holds does not matter
};
size_t argmax_scratch_bytes(int n_rows);
// A NaN is never chosen and never the second largest. The result does not depend on how the row is cut.
void argmax(const ArgmaxArgs& a, cudaStream_t stream);

}  // namespace minfer::cu
