// An engine without a model: what a row chooses is a hash of all the tokens that its sequence holds. So a
// text depends on the right tokens being in the right sequence at the right positions, and on nothing else.
// Checks the contracts of core/engine.h and core/batch.h, and counts.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/batch_check.h"
#include "core/engine.h"

namespace minfer::test {

class HashingEngine final : public Engine {
 public:
  struct Options {
    int32_t n_ctx = 256;
    int32_t n_vocab = 264;           // tiny_model.h
    int64_t n_kv_tokens = 1 << 20;   // room for all sequences together
    TokenId bad_token = -1;          // a sequence that holds it gives results that are not finite
    int32_t interrupt_at_step = -1;  // forward() throws Error(kInterrupted) then
    bool promises_room = false;      // kv_fits() says yes whatever there is
  };
  explicit HashingEngine(const Options& options);

  const HParams& hparams() const override { return hparams_; }
  std::string description() const override { return "hashing"; }
  uint64_t kv_bytes(int32_t n_tokens) const override { return static_cast<uint64_t>(n_tokens); }
  bool kv_fits(int32_t n_tokens) const override { return options_.promises_room || has_room(n_tokens); }
  int32_t max_batch_rows() const override { return 512; }
  SeqId kv_reserve(int32_t n_tokens) override;
  void kv_copy(SeqId src, SeqId dst, int32_t n) override;
  void kv_truncate(SeqId seq, int32_t n) override;
  void kv_free(SeqId seq) override;
  int32_t kv_length(SeqId seq) const override;
  std::span<const RowResult> forward(const Batch& batch) override;

  size_t n_sequences() const { return sequences_.size(); }
  const std::vector<Batch>& batches() const { return batches_; }
  size_t n_rows() const;  // of all batches
  int64_t n_copied() const { return n_copied_; }
  const std::vector<SeqId>& copy_sources() const { return copy_sources_; }
  size_t n_sequences_peak() const { return n_sequences_peak_; }

 private:
  struct Sequence {
    int32_t room = 0;
    std::vector<TokenId> tokens;
    std::optional<TokenId> last_argmax;
  };
  bool has_room(int32_t n_tokens) const { return n_reserved_ + n_tokens <= options_.n_kv_tokens; }
  Sequence& at(SeqId seq);
  RowResult choose(const Sequence& sequence, Want want);

  Options options_;
  HParams hparams_;
  std::map<SeqId, Sequence> sequences_;
  SeqId next_ = 0;
  int64_t n_reserved_ = 0, n_copied_ = 0;
  size_t n_sequences_peak_ = 0;
  std::vector<SeqId> copy_sources_;
  std::vector<Batch> batches_;
  std::vector<RowResult> results_;
  std::vector<std::vector<float>> logits_;
};

}  // namespace minfer::test
