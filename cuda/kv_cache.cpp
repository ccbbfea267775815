#include "cuda/kv_cache.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <vector>

#include "core/error.h"

namespace minfer::cu {

KvCache::KvCache(const HParams& h, int32_t n_slots)
    : n_layer_(h.n_layer),
      n_head_kv_(h.n_head_kv),
      head_dim_(h.head_dim),
      n_slots_(n_slots),
      layer_elements_(size_t{1} * h.n_head_kv * n_slots * h.head_dim),
      arenas_(2 * layer_elements_ * h.n_layer) {
  arenas_.fill_bytes(0);
}

uint64_t KvCache::bytes(const HParams& h, int64_t n_tokens) {
  return 2 * sizeof(half) * static_cast<uint64_t>(h.n_layer) * h.kv_dim() * static_cast<uint64_t>(n_tokens);
}

// The first slot of the first gap of n_tokens slots; `largest` gets the size of the largest gap where there
// is none.
std::optional<int32_t> KvCache::find_gap(int32_t n_tokens, int32_t* largest) const {
  std::vector<Extent> taken;
  for (const auto& [id, extent] : sequences_) taken.push_back(extent);
  std::sort(taken.begin(), taken.end(),
            [](const Extent& a, const Extent& b) { return a.first_slot < b.first_slot; });
  taken.push_back({.first_slot = n_slots_, .n_slots = 0, .length = 0});  // the end
  int32_t at = 0, largest_gap = 0;
  for (const Extent& extent : taken) {
    const int32_t gap = extent.first_slot - at;
    if (gap >= n_tokens) return at;
    largest_gap = std::max(largest_gap, gap);
    at = std::max(at, extent.first_slot + extent.n_slots);  // an empty extent may stand where another begins
  }
  if (largest != nullptr) *largest = largest_gap;
  return std::nullopt;
}

SeqId KvCache::reserve(int32_t n_tokens) {
  if (n_tokens < 0) throw Error(ExitCode::kRuntime, fmt::format("kv_reserve: {} tokens", n_tokens));
  int32_t largest = 0;
  const std::optional<int32_t> at = find_gap(n_tokens, &largest);
  if (!at) {
    throw Error(ExitCode::kDevice,
                fmt::format("KV cache: needs {} contiguous slots, {} available (of {} in all)", n_tokens,
                            largest, n_slots_));
  }
  sequences_[next_] = {*at, n_tokens, 0};
  return next_++;
}

KvCache::Extent& KvCache::find(SeqId seq) {
  const auto it = sequences_.find(seq);
  if (it == sequences_.end()) throw Error(ExitCode::kRuntime, fmt::format("KV cache: no sequence {}", seq));
  return it->second;
}

const KvCache::Extent& KvCache::extent(SeqId seq) const {
  return const_cast<KvCache*>(this)->find(seq);
}

void KvCache::copy(SeqId src, SeqId dst, int32_t n, cudaStream_t stream) {
  const Extent& from = find(src);
  Extent& to = find(dst);
  if (n < 0 || n > from.length || n > to.n_slots) {
    throw Error(ExitCode::kRuntime, fmt::format("kv_copy: {} tokens from a sequence of {} into room for {}",
                                                n, from.length, to.n_slots));
  }
  if (src != dst && n > 0) {
    // K and V of all layers and heads are [2 n_layer n_head_kv] rows of n_slots * head_dim: one strided copy.
    const size_t pitch = size_t{1} * n_slots_ * head_dim_ * sizeof(half);
    check(cudaMemcpy2DAsync(arenas_.data() + size_t{1} * to.first_slot * head_dim_, pitch,
                            arenas_.data() + size_t{1} * from.first_slot * head_dim_, pitch,
                            size_t{1} * n * head_dim_ * sizeof(half), size_t{2} * n_layer_ * n_head_kv_,
                            cudaMemcpyDeviceToDevice, stream),
          "kv_copy");
  }
  to.length = n;
}

void KvCache::truncate(SeqId seq, int32_t n) {
  Extent& extent = find(seq);
  if (n < 0 || n > extent.length) {
    throw Error(ExitCode::kRuntime,
                fmt::format("kv_truncate: to {} tokens, sequence {} has {}", n, seq, extent.length));
  }
  extent.length = n;
}

void KvCache::free(SeqId seq) {
  find(seq);
  sequences_.erase(seq);
}

void KvCache::set_length(SeqId seq, int32_t n) {
  find(seq).length = n;
}

KvArena KvCache::arena(int32_t layer) const {
  half* k = arenas_.data() + 2 * layer_elements_ * static_cast<size_t>(layer);
  return {.k = k, .v = k + layer_elements_, .n_slots = n_slots_};
}

}  // namespace minfer::cu
