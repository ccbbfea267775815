#include "tests/support/hashing_engine.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "core/error.h"

namespace minfer::test {
namespace {

uint64_t mixed(uint64_t x) {  // the finalizer of splitmix64 (Steele, Lea and Flood 2014)
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace

HashingEngine::HashingEngine(const Options& options) : options_(options) {
  hparams_.n_ctx_train = options.n_ctx;
  hparams_.n_vocab = options.n_vocab;
  hparams_.n_layer = 4;
}

SeqId HashingEngine::kv_reserve(int32_t n_tokens) {
  if (!has_room(n_tokens)) {
    throw Error(ExitCode::kDevice, fmt::format("KV cache: needs {} tokens, {} available", n_tokens,
                                               options_.n_kv_tokens - n_reserved_));
  }
  n_reserved_ += n_tokens;
  sequences_[next_].room = n_tokens;
  n_sequences_peak_ = std::max(n_sequences_peak_, sequences_.size());
  return next_++;
}

HashingEngine::Sequence& HashingEngine::at(SeqId seq) {
  const auto found = sequences_.find(seq);
  if (found == sequences_.end()) throw Error(ExitCode::kRuntime, fmt::format("no sequence {}", seq));
  return found->second;
}

void HashingEngine::kv_copy(SeqId src, SeqId dst, int32_t n) {
  const Sequence& from = at(src);
  Sequence& to = at(dst);
  if (n < 0 || n > kv_length(src) || n > to.room) throw Error(ExitCode::kRuntime, "kv_copy out of range");
  to.tokens = {from.tokens.begin(), from.tokens.begin() + n};
  to.last_argmax.reset();
  n_copied_ += n;
  copy_sources_.push_back(src);
}

void HashingEngine::kv_truncate(SeqId seq, int32_t n) {
  if (n < 0 || n > kv_length(seq)) throw Error(ExitCode::kRuntime, "kv_truncate out of range");
  at(seq).tokens.resize(static_cast<size_t>(n));
  at(seq).last_argmax.reset();
}

void HashingEngine::kv_free(SeqId seq) {
  n_reserved_ -= at(seq).room;
  sequences_.erase(seq);
}

int32_t HashingEngine::kv_length(SeqId seq) const {
  return static_cast<int32_t>(const_cast<HashingEngine*>(this)->at(seq).tokens.size());
}

std::span<const RowResult> HashingEngine::forward(const Batch& batch) {
  if (static_cast<int32_t>(batches_.size()) == options_.interrupt_at_step) {
    throw Error(ExitCode::kInterrupted, "interrupted");
  }
  const std::vector<Row> rows =
      checked_rows(batch, hparams_.n_vocab, [this](SeqId seq) -> std::optional<SequenceState> {
        if (!sequences_.contains(seq)) return std::nullopt;
        return SequenceState{kv_length(seq), at(seq).room, at(seq).last_argmax};
      });
  batches_.push_back(batch);
  results_.clear();
  logits_.clear();
  for (size_t i = 0; i < rows.size(); ++i) {
    Sequence& sequence = at(rows[i].seq);
    sequence.tokens.push_back(rows[i].token);
    if (rows[i].want == Want::kNothing) continue;
    results_.push_back(choose(sequence, rows[i].want));
    results_.back().row = static_cast<int32_t>(i);
    sequence.last_argmax = results_.back().argmax;
  }
  return results_;
}

RowResult HashingEngine::choose(const Sequence& sequence, Want want) {
  uint64_t hash = 1;
  for (const TokenId id : sequence.tokens)
    hash = mixed(hash + static_cast<uint64_t>(id) * 0x9e3779b97f4a7c15);
  RowResult result;
  result.argmax = static_cast<TokenId>(hash % static_cast<uint64_t>(hparams_.n_vocab));
  result.max_logit = 8;
  result.margin = hash % 16 == 0 ? 0.01f : 1.0f;
  const bool bad =
      std::find(sequence.tokens.begin(), sequence.tokens.end(), options_.bad_token) != sequence.tokens.end();
  if (bad) result.bad_layer = 2;
  if (want == Want::kLogits) {
    std::vector<float> logits(static_cast<size_t>(hparams_.n_vocab));
    for (size_t i = 0; i < logits.size(); ++i)
      logits[i] = static_cast<float>(mixed(hash + i) % 1000) * 0.007f;
    logits[static_cast<size_t>(result.argmax)] = result.max_logit;
    logits_.push_back(std::move(logits));
    result.logits = logits_.back();  // its elements stay where they are when logits_ grows
  }
  return result;
}

size_t HashingEngine::n_rows() const {
  size_t n = 0;
  for (const Batch& batch : batches_) n += batch.rows.size();
  return n;
}

}  // namespace minfer::test
