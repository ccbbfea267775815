#include "core/reference/reference_engine.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <limits>
#include <map>
#include <new>
#include <optional>
#include <vector>

#include "core/batch_check.h"
#include "core/cancel.h"
#include "core/error.h"
#include "core/layer_probe.h"
#include "core/process.h"
#include "core/reference/kv_cache.h"
#include "core/reference/matrix.h"
#include "core/reference/ops.h"
#include "core/reference/rope_table.h"
#include "core/reference/weights.h"
#include "gguf/isa.h"

namespace minfer {
namespace {

// Rows that go through the layers together, and through the head together: they bound the memory for
// activations. A row's result is the same whatever they are.
constexpr size_t kMaxRows = 512;
constexpr size_t kMaxHeadRows = 32;
constexpr int kMaxThreads = 1024;

int choose_threads(int n) {
  if (n < 0 || n > kMaxThreads) {
    throw Error(ExitCode::kUsage,
                fmt::format("{} threads: needs 0..{} (0: one a processor)", n, kMaxThreads));
  }
  return n ? n : std::min(usable_processors(), kMaxThreads);
}

int32_t choose_vocab(int32_t n_used, const HParams& h, const gguf::Reader& file) {
  if (n_used < 0 || n_used > h.n_vocab) {
    throw Error(ExitCode::kModelFile, fmt::format("{}: the tokenizer has {} tokens, but the head has {} rows",
                                                  gguf::printable(file.name()), n_used, h.n_vocab));
  }
  return n_used ? n_used : h.n_vocab;
}

class ReferenceEngine final : public Engine, public LayerProbed {
 public:
  ReferenceEngine(const gguf::Reader& file, const ReferenceOptions& options)
      : hparams_(HParams::read(file)),
        n_vocab_used_(choose_vocab(options.n_vocab_used, hparams_, file)),
        weights_(ModelWeights::load(file, hparams_)),
        n_weight_bytes_(file.file_bytes()),
        rope_table_(hparams_, weights_.rope_factors),
        kv_(hparams_),
        team_(choose_threads(options.n_threads),
              std::max({hparams_.n_embd, hparams_.q_dim(), hparams_.n_ff})),
        x_(hparams_.n_embd),
        normed_(hparams_.n_embd),
        q_(hparams_.q_dim()),
        k_(hparams_.kv_dim()),
        v_(hparams_.kv_dim()),
        attended_(hparams_.q_dim()),
        gate_(hparams_.n_ff),
        up_(hparams_.n_ff),
        out_(hparams_.n_embd),
        cos_sin_(hparams_.n_rot),
        scratch_logits_(hparams_.n_vocab) {}

  const HParams& hparams() const override { return hparams_; }
  std::string description() const override {
    return fmt::format("cpu, {} thread{}, {}", team_.n_threads(), team_.n_threads() == 1 ? "" : "s",
                       gguf::isa_name(gguf::isa()));
  }
  void set_layer_probe(LayerProbe* probe) override { probe_ = probe; }
  uint64_t kv_bytes(int32_t n_tokens) const override { return kv_.bytes(std::max(n_tokens, 0)); }
  // The weights are a mapped file, whose pages the system counts as available too: what runs beside others is
  // not to push them out. A reservation that has to be is not held to that.
  bool kv_fits(int32_t n_tokens) const override {
    return kv_bytes(n_tokens) + n_weight_bytes_ <= kv_.available_bytes();
  }
  int32_t max_batch_rows() const override { return static_cast<int32_t>(kMaxRows); }
  SeqId kv_reserve(int32_t n_tokens) override { return kv_.reserve(n_tokens); }
  int32_t kv_length(SeqId seq) const override { return kv_.length(seq); }

  // Where a sequence's content changes, what it last chose is no longer what should follow.
  void kv_copy(SeqId src, SeqId dst, int32_t n) override {
    kv_.copy(src, dst, n);
    if (src != dst) last_argmax_.erase(dst);
  }
  void kv_truncate(SeqId seq, int32_t n) override {
    if (n < kv_.length(seq)) last_argmax_.erase(seq);
    kv_.truncate(seq, n);
  }
  void kv_free(SeqId seq) override {
    kv_.free(seq);
    last_argmax_.erase(seq);
  }

  std::span<const RowResult> forward(const Batch& batch) override;

 private:
  std::optional<SequenceState> state(SeqId seq) const;
  void reserve_memory(std::span<const Row> rows);
  void run(std::span<const Row> rows, size_t first_row);
  void layer(int32_t l, std::span<const Row> rows);
  void show_layer(int32_t l, std::span<const Row> rows, size_t first_row) const;
  void embed(std::span<const Row> rows);
  void head(std::span<const Row> rows, size_t first_row);
  RowResult judge(std::span<const float> logits, int32_t bad_layer) const;

  HParams hparams_;
  int32_t n_vocab_used_;
  ModelWeights weights_;
  uint64_t n_weight_bytes_;
  RopeTable rope_table_;
  KvCache kv_;
  Team team_;

  // Activations of the rows under way, [n_rows, ...].
  Matrix x_;          // the residual stream, n_embd
  Matrix normed_;     // n_embd
  Matrix q_, k_, v_;  // q_dim, kv_dim, kv_dim
  Matrix attended_;   // q_dim
  Matrix gate_, up_;  // n_ff
  Matrix out_;        // n_embd
  Matrix cos_sin_;    // n_rot / 2 pairs
  std::vector<int32_t> bad_layer_;

  Matrix scratch_logits_;  // of rows whose logits are not asked for
  AlignedBuffer logits_;   // [rows that want logits, n_vocab]
  size_t n_logit_rows_ = 0;
  std::vector<RowResult> results_;
  std::map<SeqId, TokenId> last_argmax_;
  LayerProbe* probe_ = nullptr;
};

// One block of the transformer: Touvron et al. 2023, LLaMA, with what Qwen adds (biases, norms of q and k).
void ReferenceEngine::layer(int32_t l, std::span<const Row> rows) {
  const LayerWeights& w = weights_.layers[static_cast<size_t>(l)];
  const float eps = hparams_.rms_eps;
  const int32_t head_dim = hparams_.head_dim;

  rmsnorm(x_, w.attn_norm, eps, normed_, team_);
  linear(w.q, normed_, q_, team_);
  linear(w.k, normed_, k_, team_);
  linear(w.v, normed_, v_, team_);
  if (hparams_.has_qk_norm) {
    rmsnorm_heads(q_, w.q_norm, eps, team_);
    rmsnorm_heads(k_, w.k_norm, eps, team_);
  }
  rope(rope_table_, cos_sin_, head_dim, q_, team_);
  rope(rope_table_, cos_sin_, head_dim, k_, team_);
  store_kv(rows, l, k_, v_, kv_, team_);
  attention(rows, l, hparams_, kv_, q_, attended_, team_);
  linear(w.o, attended_, out_, team_);
  add(x_, out_, team_);

  rmsnorm(x_, w.ffn_norm, eps, normed_, team_);
  linear(w.gate, normed_, gate_, team_);
  linear(w.up, normed_, up_, team_);
  swiglu(gate_, up_, team_);
  linear(w.down, gate_, out_, team_);
  add(x_, out_, team_);
}

void ReferenceEngine::show_layer(int32_t l, std::span<const Row> rows, size_t first_row) const {
  for (size_t t = 0; t < rows.size(); ++t) {
    if (rows[t].want == Want::kNothing) continue;
    probe_->residual(l, static_cast<int32_t>(first_row + t), x_.values(static_cast<int64_t>(t)));
  }
}

void ReferenceEngine::run(std::span<const Row> rows, size_t first_row) {
  embed(rows);
  bad_layer_.assign(rows.size(), -1);
  for (int32_t l = 0; l < hparams_.n_layer; ++l) {
    layer(l, rows);
    for (size_t t = 0; t < rows.size(); ++t) {
      if (rows[t].want != Want::kNothing && bad_layer_[t] < 0 &&
          !all_finite(x_.values(static_cast<int64_t>(t)))) {
        bad_layer_[t] = l;
      }
    }
    if (probe_ != nullptr) show_layer(l, rows, first_row);
  }
  const size_t n_answered = results_.size();
  head(rows, first_row);
  // Any operation may be interrupted: a sequence changes only after all of them.
  for (const Row& row : rows) kv_.set_length(row.seq, row.pos + 1);
  for (size_t i = n_answered; i < results_.size(); ++i) {
    last_argmax_[rows[static_cast<size_t>(results_[i].row) - first_row].seq] = results_[i].argmax;
  }
}

void ReferenceEngine::embed(std::span<const Row> rows) {
  const auto n = static_cast<int32_t>(rows.size());
  x_.resize(n);
  cos_sin_.resize(n);
  team_.each(n, [&](int64_t t, int) {
    const Row& row = rows[static_cast<size_t>(t)];
    weights_.token_embd.decode_row(row.token, x_.row(t));
    rope_table_.fill(row.pos, cos_sin_.row(t));
  });
}

// Logits of the rows that want a result, a group of one kind at a time: every group decodes the whole head.
void ReferenceEngine::head(std::span<const Row> rows, size_t first_row) {
  std::vector<size_t> wanted;
  for (size_t t = 0; t < rows.size(); ++t) {
    if (rows[t].want != Want::kNothing) wanted.push_back(t);
  }
  std::stable_sort(wanted.begin(), wanted.end(),
                   [&](size_t a, size_t b) { return rows[a].want < rows[b].want; });
  const size_t n_answered = results_.size();
  const auto n_vocab = static_cast<size_t>(hparams_.n_vocab);
  for (size_t begin = 0, end; begin < wanted.size(); begin = end) {
    const Want want = rows[wanted[begin]].want;
    for (end = begin; end < wanted.size() && end - begin < kMaxHeadRows && rows[wanted[end]].want == want;
         ++end) {
      const auto source = static_cast<int64_t>(wanted[end]);
      std::copy_n(x_.row(source), hparams_.n_embd, out_.row(static_cast<int64_t>(end - begin)));
    }
    out_.resize(static_cast<int32_t>(end - begin));
    rmsnorm(out_, weights_.output_norm, hparams_.rms_eps, normed_, team_);
    const bool keep = want == Want::kLogits;
    float* logits = keep ? logits_.data() + n_logit_rows_ * n_vocab : scratch_logits_.row(0);
    const int64_t stride = keep ? hparams_.n_vocab : scratch_logits_.stride();
    linear(weights_.output, normed_, logits, stride, team_);
    if (keep) n_logit_rows_ += end - begin;
    for (size_t i = begin; i < end; ++i) {
      const std::span<const float> row(logits + static_cast<int64_t>(i - begin) * stride, n_vocab);
      RowResult result = judge(row, bad_layer_[wanted[i]]);
      result.row = static_cast<int32_t>(first_row + wanted[i]);
      if (keep) result.logits = row;
      results_.push_back(result);
    }
  }
  std::sort(results_.begin() + static_cast<std::ptrdiff_t>(n_answered), results_.end(),
            [](const RowResult& a, const RowResult& b) { return a.row < b.row; });
}

RowResult ReferenceEngine::judge(std::span<const float> logits, int32_t bad_layer) const {
  const std::span<const float> used = logits.first(static_cast<size_t>(n_vocab_used_));
  RowResult result;
  result.bad_layer = bad_layer < 0 && !all_finite(used) ? hparams_.n_layer : bad_layer;
  float best = -std::numeric_limits<float>::infinity(), second = best;
  for (size_t i = 0; i < used.size(); ++i) {
    if (used[i] > best) {
      second = best;
      best = used[i];
      result.argmax = static_cast<TokenId>(i);
    } else if (used[i] > second) {
      second = used[i];
    }
  }
  result.max_logit = best;
  result.margin = best - second;
  return result;
}

std::span<const RowResult> ReferenceEngine::forward(const Batch& batch) {
  const std::vector<Row> rows =
      checked_rows(batch, hparams_.n_vocab, [this](SeqId seq) { return state(seq); });
  reserve_memory(rows);
  results_.clear();
  n_logit_rows_ = 0;
  team_.run([&] {
    for (size_t first = 0; first < rows.size(); first += kMaxRows) {
      run(std::span(rows).subspan(first, std::min(kMaxRows, rows.size() - first)), first);
    }
  });
  return results_;
}

std::optional<SequenceState> ReferenceEngine::state(SeqId seq) const {
  if (!kv_.has(seq)) return std::nullopt;
  SequenceState state{.length = kv_.length(seq), .room = kv_.room(seq), .last_argmax = {}};
  if (const auto last = last_argmax_.find(seq); last != last_argmax_.end()) state.last_argmax = last->second;
  return state;
}

// Everything that forward() will need, so that nothing has changed where it is too much.
void ReferenceEngine::reserve_memory(std::span<const Row> rows) {
  const auto n = static_cast<int32_t>(std::min(rows.size(), kMaxRows));
  size_t n_logits = 0, n_argmax = 0;
  int32_t n_positions = 0;
  for (const Row& row : rows) {
    n_logits += row.want == Want::kLogits;
    n_argmax += row.want == Want::kArgmax;
    n_positions = std::max(n_positions, row.pos + 1);
  }
  const size_t n_floats = n_logits * static_cast<size_t>(hparams_.n_vocab);
  try {
    for (Matrix* m : {&x_, &normed_, &q_, &k_, &v_, &attended_, &gate_, &up_, &out_, &cos_sin_}) m->resize(n);
    scratch_logits_.resize(static_cast<int32_t>(std::min(n_argmax, kMaxHeadRows)));
    team_.reserve_scores(n_positions);
    if (n_floats > logits_.size()) {
      results_.clear();  // they point into what is replaced
      logits_ = AlignedBuffer();
      logits_ = AlignedBuffer(n_floats);
    }
  } catch (const std::bad_alloc&) {
    throw Error(ExitCode::kDevice,
                fmt::format("a batch of {} rows, {} of them with logits ({} bytes): needs more than the {} "
                            "bytes of memory that are available",
                            rows.size(), n_logits, n_floats * sizeof(float), available_memory_bytes()));
  }
}

}  // namespace

std::unique_ptr<Engine> make_reference_engine(const gguf::Reader& file, const ReferenceOptions& options) {
  return std::make_unique<ReferenceEngine>(file, options);
}

}  // namespace minfer
