// A sequence of an engine, owned: freed however its scope is left.
#pragma once

#include "core/engine.h"

namespace minfer {

class Sequence {
 public:
  // Throws Error(kDevice) where there is no room for n_tokens.
  Sequence(Engine& engine, int32_t n_tokens) : engine_(engine), id_(engine.kv_reserve(n_tokens)) {}
  ~Sequence() { engine_.kv_free(id_); }
  Sequence(const Sequence&) = delete;
  Sequence& operator=(const Sequence&) = delete;
  SeqId id() const { return id_; }

 private:
  Engine& engine_;
  SeqId id_;
};

}  // namespace minfer
