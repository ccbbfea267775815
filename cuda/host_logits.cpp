#include "cuda/host_logits.h"

#include <algorithm>
#include <bit>

namespace minfer::cu {

// Sizes double, so that a number of rows that grows by one a step does not pin anew at every step (1 ms a 4
// MB).
float* HostLogits::room_for(size_t n_rows) {
  if (n_groups_ == groups_.size()) groups_.emplace_back();
  PinnedBuffer<float>& group = groups_[n_groups_++];
  if (group.size() < n_rows * n_vocab_) {
    group = {};  // gives its memory back first
    group = PinnedBuffer<float>(std::bit_ceil(n_rows) * n_vocab_);
  }
  return group.data();
}

std::vector<std::span<const float>> HostLogits::fetch(const float* logits, const std::vector<bool>& wanted,
                                                      cudaStream_t stream) {
  std::vector<std::span<const float>> rows(wanted.size());
  const auto n_wanted = static_cast<size_t>(std::count(wanted.begin(), wanted.end(), true));
  if (n_wanted == 0) return rows;
  float* to = room_for(n_wanted);
  for (size_t i = 0; i < wanted.size();) {
    const size_t first = i;
    for (; i < wanted.size() && wanted[i]; ++i) {
      rows[i] = {to + (i - first) * n_vocab_, n_vocab_};
    }
    const size_t n = (i - first) * n_vocab_;
    if (n == 0) {
      ++i;
      continue;
    }
    check(cudaMemcpyAsync(to, logits + first * n_vocab_, n * sizeof(float), cudaMemcpyDeviceToHost, stream),
          "logits");
    to += n;
  }
  return rows;
}

}  // namespace minfer::cu
