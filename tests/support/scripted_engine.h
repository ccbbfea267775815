// An engine without a model: it chooses what a script says.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "core/engine.h"
#include "tests/support/tiny_model.h"

namespace minfer::test {

class ScriptedEngine final : public Engine {
 public:
  // `script` are the choices in order, whatever the engine is fed. Its vocabulary is the tiny models'.
  ScriptedEngine(std::vector<TokenId> script, int32_t n_ctx);

  const HParams& hparams() const override { return hparams_; }
  std::string description() const override { return "scripted"; }
  uint64_t kv_bytes(int32_t n_tokens) const override { return static_cast<uint64_t>(n_tokens); }
  bool kv_fits(int32_t n_tokens) const override { return n_tokens > 0; }
  int32_t max_batch_rows() const override { return rows_a_group; }
  SeqId kv_reserve(int32_t n_tokens) override;
  void kv_copy(SeqId src, SeqId dst, int32_t n) override;
  void kv_truncate(SeqId seq, int32_t n) override;
  void kv_free(SeqId seq) override { sequences_.erase(seq); }
  int32_t kv_length(SeqId seq) const override {
    return static_cast<int32_t>(sequences_.at(seq).tokens.size());
  }
  std::span<const RowResult> forward(const Batch& batch) override;

  // The tokens of a sequence, and whether every one is freed.
  const std::vector<TokenId>& tokens(SeqId seq) const { return sequences_.at(seq).tokens; }
  bool all_freed() const { return sequences_.empty(); }

  std::function<void()> before_group;  // called before each group of rows; may throw
  int32_t rows_a_group = 512;
  int32_t bad_step = -1;  // this choice is not finite
  float margin = 1;       // of every choice

  int32_t reserved = 0;      // by the last kv_reserve()
  std::vector<TokenId> fed;  // every row's token
  std::vector<Want> wants;   // and what it asked for

 private:
  struct Held {
    int32_t room = 0;
    std::vector<TokenId> tokens;
  };
  RowResult choice(const Row& row, size_t index, std::span<float> logits);

  HParams hparams_;
  std::vector<TokenId> script_;
  int32_t n_chosen_ = 0;
  SeqId next_ = 7;
  std::map<SeqId, Held> sequences_;
  std::vector<RowResult> results_;
  std::vector<float> logits_;
};

}  // namespace minfer::test
