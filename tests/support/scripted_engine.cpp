#include "tests/support/scripted_engine.h"

#include "tests/support/catch.h"

namespace minfer::test {

ScriptedEngine::ScriptedEngine(std::vector<TokenId> script, int32_t n_ctx) : script_(std::move(script)) {
  hparams_.n_ctx_train = n_ctx;
  hparams_.n_layer = 4;
  hparams_.n_vocab = kTinyVocab;
}

SeqId ScriptedEngine::kv_reserve(int32_t n_tokens) {
  reserved = n_tokens;
  sequences_[next_].room = n_tokens;
  return next_++;
}

void ScriptedEngine::kv_copy(SeqId src, SeqId dst, int32_t n) {
  const auto& from = sequences_.at(src).tokens;
  REQUIRE(n <= static_cast<int32_t>(from.size()));
  REQUIRE(n <= sequences_.at(dst).room);
  sequences_.at(dst).tokens.assign(from.begin(), from.begin() + n);
}

void ScriptedEngine::kv_truncate(SeqId seq, int32_t n) {
  REQUIRE(n <= kv_length(seq));
  sequences_.at(seq).tokens.resize(static_cast<size_t>(n));
}

std::span<const RowResult> ScriptedEngine::forward(const Batch& batch) {
  results_.clear();
  const auto n_vocab = static_cast<size_t>(hparams_.n_vocab);
  logits_.assign(batch.rows.size() * n_vocab, 0);
  for (size_t i = 0; i < batch.rows.size(); ++i) {
    const Row& row = batch.rows[i];
    if (i % static_cast<size_t>(rows_a_group) == 0 && before_group) before_group();
    Held& held = sequences_.at(row.seq);
    REQUIRE(row.pos == static_cast<int32_t>(held.tokens.size()));
    REQUIRE(row.pos < held.room);
    held.tokens.push_back(row.token);
    fed.push_back(row.token);
    wants.push_back(row.want);
    if (row.want != Want::kNothing)
      results_.push_back(choice(row, i, std::span(logits_).subspan(i * n_vocab, n_vocab)));
  }
  return results_;
}

RowResult ScriptedEngine::choice(const Row& row, size_t index, std::span<float> logits) {
  RowResult result;
  result.row = static_cast<int32_t>(index);
  result.argmax = script_.at(static_cast<size_t>(n_chosen_));
  result.max_logit = result.margin = margin;
  result.bad_layer = n_chosen_ == bad_step ? 3 : -1;
  ++n_chosen_;
  if (row.want != Want::kLogits) return result;
  logits[static_cast<size_t>(result.argmax)] = margin;
  result.logits = logits;
  return result;
}

}  // namespace minfer::test
