// Rows of logits on their way to the host, into page-locked memory: pageable memory would be copied twice,
// and a row at a time.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <span>
#include <vector>

#include "cuda/runtime/buffer.h"

namespace minfer::cu {

class HostLogits {
 public:
  explicit HostLogits(int32_t n_vocab) : n_vocab_(static_cast<size_t>(n_vocab)) {}

  // A forward pass begins: what the last one handed out may be overwritten.
  void begin_pass() { n_groups_ = 0; }

  // Puts on the stream the copies of those rows of `logits` (device, [wanted.size(), n_vocab]) that are
  // wanted, one copy a run of them. By row: where it will be once the stream is through, empty where it is
  // not wanted. Valid until the next begin_pass(), whatever is fetched in between. Throws Error(kDevice)
  // where there is no page-locked memory.
  std::vector<std::span<const float>> fetch(const float* logits, const std::vector<bool>& wanted,
                                            cudaStream_t stream);

 private:
  float* room_for(size_t n_rows);

  size_t n_vocab_;
  std::vector<PinnedBuffer<float>> groups_;  // one a fetch, the first n_groups_ of them in use
  size_t n_groups_ = 0;
};

}  // namespace minfer::cu
