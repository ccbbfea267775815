#include "core/verify.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "core/cancel.h"
#include "core/error.h"
#include "core/layer_probe.h"
#include "core/sequence.h"

namespace minfer {
namespace {

// Rows compared at a time: they bound the memory for logits (0.6 MB a row of a large vocabulary, in both
// engines).
constexpr size_t kChunk = 256;

class ErrorSum {
 public:
  void add(double error, int32_t pos) {
    ++n_;
    sum_ += error;
    if (n_ == 1 || !(error <= worst_)) worst_ = error, worst_pos_ = pos;  // NaN is worse than anything
  }
  ErrorSummary summary() const {
    return {.mean = n_ > 0 ? sum_ / static_cast<double>(n_) : 0, .worst = worst_, .worst_pos = worst_pos_};
  }

 private:
  int64_t n_ = 0;
  double sum_ = 0, worst_ = 0;
  int32_t worst_pos_ = 0;
};

// Keeps what one engine shows, by layer and row.
class Recorder final : public LayerProbe {
 public:
  void residual(int32_t layer, int32_t row, std::span<const float> x) override {
    seen_[{layer, row}].assign(x.begin(), x.end());
  }
  std::span<const float> at(int32_t layer, int32_t row) const { return seen_.at({layer, row}); }
  void clear() { seen_.clear(); }

 private:
  std::map<std::pair<int32_t, int32_t>, std::vector<float>> seen_;
};

// Holds what another engine shows against it.
class Comparer final : public LayerProbe {
 public:
  Comparer(const Recorder& recorder, int32_t n_layer)
      : recorder_(recorder), sums_(static_cast<size_t>(n_layer)) {}
  void residual(int32_t layer, int32_t row, std::span<const float> x) override {
    sums_[static_cast<size_t>(layer)].add(relative_error(x, recorder_.at(layer, row)), first_pos + row);
  }
  std::vector<ErrorSummary> summaries() const {
    std::vector<ErrorSummary> out;
    for (const ErrorSum& sum : sums_) out.push_back(sum.summary());
    return out;
  }
  int32_t first_pos = 0;

 private:
  const Recorder& recorder_;
  std::vector<ErrorSum> sums_;
};

// An engine that shows its layers while this lives.
class Probing {
 public:
  Probing(Engine& engine, LayerProbe& probe) : probed_(dynamic_cast<LayerProbed*>(&engine)) {
    if (probed_ == nullptr) {
      throw Error(ExitCode::kUsage,
                  "--verify-layers: the engine '" + engine.description() + "' does not show its layers");
    }
    probed_->set_layer_probe(&probe);
  }
  ~Probing() { probed_->set_layer_probe(nullptr); }
  Probing(const Probing&) = delete;
  Probing& operator=(const Probing&) = delete;

 private:
  LayerProbed* probed_;
};

class Verification {
 public:
  Verification(Engine& reference, Engine& candidate, int32_t n_tokens, bool layers)
      : reference_(reference),
        candidate_(candidate),
        reference_seq_(reference, n_tokens),
        candidate_seq_(candidate, n_tokens),
        comparer_(recorder_, reference.hparams().n_layer) {
    if (!layers) return;
    reference_probing_.emplace(reference, recorder_);
    candidate_probing_.emplace(candidate, comparer_);
  }

  // Feeds both the same tokens; what the reference chooses behind the last one.
  TokenId feed(std::span<const TokenId> ids, int32_t first_pos) {
    throw_if_interrupted();
    recorder_.clear();
    comparer_.first_pos = first_pos;
    const auto want = reference_.forward(batch(reference_seq_.id(), ids, first_pos));
    const auto got = candidate_.forward(batch(candidate_seq_.id(), ids, first_pos));
    for (size_t i = 0; i < ids.size(); ++i) compare(want[i], got[i], first_pos + static_cast<int32_t>(i));
    return want.back().argmax;
  }

  void finish(VerifyReport& report) const {
    report.logits = errors_.summary();
    report.n_argmax_equal = n_equal_;
    report.n_clear = n_clear_;
    report.n_clear_equal = n_clear_equal_;
    report.first_difference = first_difference_;
    report.first_not_finite = first_not_finite_;
    if (reference_probing_) report.layers = comparer_.summaries();
  }

 private:
  static Batch batch(SeqId seq, std::span<const TokenId> ids, int32_t first_pos) {
    Batch out;
    for (size_t i = 0; i < ids.size(); ++i) {
      out.add(seq, first_pos + static_cast<int32_t>(i), ids[i], Want::kLogits);
    }
    return out;
  }

  void compare(const RowResult& want, const RowResult& got, int32_t pos) {
    check_finite(want, reference_, pos);
    if (!got.finite() && !first_not_finite_) first_not_finite_ = pos;
    const double error = relative_error(got.logits, want.logits);
    errors_.add(error, pos);
    if (want.margin >= kClearMargin) {
      ++n_clear_;
      n_clear_equal_ += want.argmax == got.argmax;
    }
    if (want.argmax == got.argmax) {
      ++n_equal_;
    } else if (!first_difference_) {
      first_difference_ = RowDifference{pos, want.argmax, got.argmax, want.margin, error};
    }
  }

  Engine& reference_;
  Engine& candidate_;
  Sequence reference_seq_, candidate_seq_;
  Recorder recorder_;
  Comparer comparer_;
  std::optional<Probing> reference_probing_, candidate_probing_;
  ErrorSum errors_;
  int32_t n_equal_ = 0, n_clear_ = 0, n_clear_equal_ = 0;
  std::optional<RowDifference> first_difference_;
  std::optional<int32_t> first_not_finite_;
};

}  // namespace

double mean_tolerance(int32_t n_layer) {
  constexpr int32_t kLayers = 4;
  constexpr double kMeanError = 2.5e-3;  // at so many layers
  return 1.5 * kMeanError * std::sqrt(static_cast<double>(std::max(n_layer, kLayers)) / kLayers);
}

double row_tolerance(int32_t n_layer) {
  return 4 * mean_tolerance(n_layer);
}

double relative_error(std::span<const float> candidate, std::span<const float> reference) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < reference.size(); ++i) {
    const double d = static_cast<double>(candidate[i]) - static_cast<double>(reference[i]);
    difference += d * d;
    norm += static_cast<double>(reference[i]) * static_cast<double>(reference[i]);
  }
  if (difference == 0) return 0;
  return norm > 0 ? std::sqrt(difference / norm) : std::numeric_limits<double>::infinity();
}

bool VerifyReport::passed() const {
  return !first_not_finite && logits.mean <= mean_tolerance(n_layer) &&
         logits.worst <= row_tolerance(n_layer) && n_clear_equal >= kClearAgreement * n_clear;
}

VerifyReport verify(Engine& reference, Engine& candidate, std::span<const TokenId> prompt,
                    const VerifyOptions& options) {
  if (prompt.empty()) throw Error(ExitCode::kUsage, "the prompt is empty");
  VerifyReport report;
  report.n_layer = reference.hparams().n_layer;
  report.n_prompt = static_cast<int32_t>(prompt.size());
  Verification run(reference, candidate, report.n_prompt + options.n_generate, options.layers);
  TokenId next = 0;
  for (size_t first = 0; first < prompt.size(); first += kChunk) {
    next =
        run.feed(prompt.subspan(first, std::min(kChunk, prompt.size() - first)), static_cast<int32_t>(first));
  }
  for (; report.n_generated < options.n_generate; ++report.n_generated) {
    const TokenId id = next;
    next = run.feed(std::span(&id, 1), report.n_prompt + report.n_generated);
  }
  run.finish(report);
  return report;
}

}  // namespace minfer
