#include "core/reference/kv_cache.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "core/error.h"
#include "core/process.h"
#include "core/reference/kernels.h"
#include "core/reference/matrix.h"

namespace minfer {

KvCache::KvCache(const HParams& h)
    : n_layer_(h.n_layer),
      n_head_kv_(h.n_head_kv),
      head_dim_(h.head_dim),
      value_stride_(padded(h.head_dim)) {}

uint64_t KvCache::bytes(int32_t n_tokens) const {
  const int64_t n_slots = (int64_t{n_tokens} + kKeyBlock - 1) / kKeyBlock * kKeyBlock;
  return static_cast<uint64_t>(n_slots * n_layer_ * n_head_kv_ * (head_dim_ + value_stride_)) * sizeof(float);
}

uint64_t KvCache::available_bytes() const {
  const uint64_t system = available_memory_bytes();
  if (system == 0) return std::numeric_limits<uint64_t>::max();
  uint64_t promised = 0;
  for (const auto& [id, s] : sequences_) promised += bytes(s.n_tokens) - bytes(s.n_touched);
  return system > promised ? system - promised : 0;
}

SeqId KvCache::reserve(int32_t n_tokens) {
  if (n_tokens < 1) {
    throw Error(ExitCode::kRuntime, fmt::format("KV cache: {} tokens reserved, needs 1 or more", n_tokens));
  }
  if (next_ == std::numeric_limits<SeqId>::max())
    throw Error(ExitCode::kRuntime, "KV cache: out of sequence ids");
  const uint64_t needed = bytes(n_tokens);
  const uint64_t available = available_bytes();
  const auto refuse = [&] {
    throw Error(ExitCode::kDevice,
                fmt::format("KV cache of {} tokens: needs {} bytes of memory, {} are available", n_tokens,
                            needed, available));
  };
  if (needed > available) refuse();
  Sequence s;
  try {
    s.arena = AlignedBuffer(needed / sizeof(float));
    s.n_tokens = n_tokens;
    s.n_slots = (int64_t{n_tokens} + kKeyBlock - 1) / kKeyBlock * kKeyBlock;
    sequences_.emplace(next_, std::move(s));
  } catch (const std::bad_alloc&) {
    refuse();
  }
  return next_++;
}

void KvCache::copy(SeqId src, SeqId dst, int32_t n) {
  const Sequence& from = find(src);
  Sequence& to = find(dst);
  if (n < 0 || n > from.length || n > to.n_tokens) {
    throw Error(ExitCode::kRuntime,
                fmt::format("KV copy of {} tokens: the source holds {}, the destination has room for {}", n,
                            from.length, to.n_tokens));
  }
  if (src != dst) {
    // Whole key blocks: what stands behind the last position is written again before it is read.
    const int64_t n_keys = (int64_t{n} + kKeyBlock - 1) / kKeyBlock * kKeyBlock * head_dim_;
    const int64_t n_values = n * value_stride_;
    for (int32_t l = 0; l < n_layer_; ++l) {
      for (int32_t h = 0; h < n_head_kv_; ++h) {
        std::copy_n(from.arena.data() + keys_at(from, l, h), n_keys, to.arena.data() + keys_at(to, l, h));
        std::copy_n(from.arena.data() + values_at(from, l, h), n_values,
                    to.arena.data() + values_at(to, l, h));
      }
    }
  }
  to.set_length(n);
}

void KvCache::truncate(SeqId seq, int32_t n) {
  Sequence& s = find(seq);
  if (n < 0 || n > s.length) {
    throw Error(ExitCode::kRuntime,
                fmt::format("KV truncate to {} tokens: the sequence holds {}", n, s.length));
  }
  s.length = n;
}

void KvCache::free(SeqId seq) {
  find(seq);
  sequences_.erase(seq);
}

void KvCache::store(SeqId seq, int32_t layer, int32_t pos, const float* k, const float* v) {
  Sequence& s = find(seq);
  const int64_t block = pos / kKeyBlock, lane = pos % kKeyBlock;
  for (int32_t h = 0; h < n_head_kv_; ++h) {
    float* keys = s.arena.data() + keys_at(s, layer, h) + block * head_dim_ * kKeyBlock + lane;
    for (int32_t d = 0; d < head_dim_; ++d) keys[int64_t{d} * kKeyBlock] = k[h * head_dim_ + d];
    std::copy_n(v + h * head_dim_, head_dim_, s.arena.data() + values_at(s, layer, h) + pos * value_stride_);
  }
}

const float* KvCache::keys(SeqId seq, int32_t layer, int32_t head) const {
  const Sequence& s = find(seq);
  return s.arena.data() + keys_at(s, layer, head);
}

const float* KvCache::values(SeqId seq, int32_t layer, int32_t head) const {
  const Sequence& s = find(seq);
  return s.arena.data() + values_at(s, layer, head);
}

KvCache::Sequence& KvCache::find(SeqId seq) {
  return const_cast<Sequence&>(std::as_const(*this).find(seq));
}

const KvCache::Sequence& KvCache::find(SeqId seq) const {
  const auto found = sequences_.find(seq);
  if (found == sequences_.end())
    throw Error(ExitCode::kRuntime, fmt::format("KV cache: no sequence {}", seq));
  return found->second;
}

int64_t KvCache::keys_at(const Sequence& s, int32_t layer, int32_t head) const {
  return s.n_slots * (int64_t{layer} * n_head_kv_ * (head_dim_ + value_stride_) + int64_t{head} * head_dim_);
}

int64_t KvCache::values_at(const Sequence& s, int32_t layer, int32_t head) const {
  return s.n_slots * (int64_t{layer} * n_head_kv_ * (head_dim_ + value_stride_) +
                      int64_t{n_head_kv_} * head_dim_ + int64_t{head} * value_stride_);
}

}  // namespace minfer
