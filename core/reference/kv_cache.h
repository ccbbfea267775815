// Private to the reference engine: the keys and values of every sequence, f32.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>

#include "core/engine.h"
#include "core/hparams.h"
#include "core/reference/aligned_buffer.h"

namespace minfer {

// One arena a sequence, layer after layer, each of them
//   keys    [n_head_kv, n_slots / kKeyBlock, head_dim, kKeyBlock]  positions innermost: scores need no sum
//   over lanes values  [n_head_kv, n_slots, padded(head_dim)]
// with n_slots the reserved tokens rounded up to whole key blocks. Zeroed, and touched only as it fills.
class KvCache {
 public:
  explicit KvCache(const HParams& hparams);

  uint64_t bytes(int32_t n_tokens) const;
  // Memory for another sequence: what the system has less what is promised to sequences and not touched yet.
  // The largest number where the system does not say.
  uint64_t available_bytes() const;
  SeqId reserve(int32_t n_tokens);
  void copy(SeqId src, SeqId dst, int32_t n);
  void truncate(SeqId seq, int32_t n);
  void free(SeqId seq);
  int32_t length(SeqId seq) const { return find(seq).length; }
  int32_t room(SeqId seq) const { return find(seq).n_tokens; }
  bool has(SeqId seq) const { return sequences_.contains(seq); }

  void store(SeqId seq, int32_t layer, int32_t pos, const float* k, const float* v);
  void set_length(SeqId seq, int32_t n) { find(seq).set_length(n); }
  const float* keys(SeqId seq, int32_t layer, int32_t head) const;
  const float* values(SeqId seq, int32_t layer, int32_t head) const;

 private:
  struct Sequence {
    AlignedBuffer arena;
    int32_t n_tokens = 0;  // room as asked for
    int64_t n_slots = 0;
    int32_t length = 0;
    int32_t n_touched = 0;  // the largest length it ever had: that memory is taken

    void set_length(int32_t n) {
      length = n;
      n_touched = std::max(n_touched, n);
    }
  };

  Sequence& find(SeqId seq);
  const Sequence& find(SeqId seq) const;
  int64_t keys_at(const Sequence& s, int32_t layer, int32_t head) const;
  int64_t values_at(const Sequence& s, int32_t layer, int32_t head) const;

  int32_t n_layer_, n_head_kv_, head_dim_;
  int64_t value_stride_;
  SeqId next_ = 0;
  std::map<SeqId, Sequence> sequences_;
};

}  // namespace minfer
