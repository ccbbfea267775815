#include "core/perplexity.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/cancel.h"
#include "core/error.h"
#include "core/process.h"
#include "core/sequence.h"
#include "core/stopwatch.h"

namespace minfer {
namespace {

// Rows whose logits are held at a time: 39 MB of a vocabulary of 152k.
constexpr int32_t kLogitRows = 64;

// -log softmax(logits)[target].
double negative_log_likelihood(std::span<const float> logits, TokenId target) {
  const double top = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - top);
  return std::log(sum) + top - static_cast<double>(logits[static_cast<size_t>(target)]);
}

// Mean and variance as they grow: Welford 1962, Note on a method for calculating corrected sums of squares.
class RunningMean {
 public:
  void add(double value) {
    ++n_;
    const double from_old = value - mean_;
    mean_ += from_old / static_cast<double>(n_);
    squares_ += from_old * (value - mean_);
  }
  int64_t n() const { return n_; }
  double mean() const { return mean_; }
  double standard_error() const {
    const auto n = static_cast<double>(n_);
    return n_ > 1 ? std::sqrt(squares_ / n / (n - 1)) : 0;
  }

 private:
  int64_t n_ = 0;
  double mean_ = 0, squares_ = 0;
};

class Perplexity {
 public:
  Perplexity(Engine& engine, const Tokenizer& tokenizer, int32_t n_ctx, int32_t n_threads)
      : engine_(engine),
        n_ctx_(n_ctx),
        n_threads_(n_threads > 0 ? n_threads : usable_processors()),
        n_vocab_(std::min(tokenizer.n_vocab(), engine.hparams().n_vocab)),
        bos_(tokenizer.adds_bos() ? tokenizer.bos_id() : -1),
        seq_(engine, n_ctx - 1) {}

  // `ids`: of one window, which begins at token `start` of the text.
  void add(std::span<const TokenId> ids, int64_t start) {
    throw_if_interrupted();
    engine_.kv_truncate(seq_.id(), 0);
    const int32_t first = n_ctx_ / 2, n_scored = n_ctx_ - 1 - first;
    forward(ids, 0, first, Want::kNothing);
    // Chunks of nearly one size: a few rows left over would go through other kernels than the rest.
    const int32_t n_chunks = (n_scored + kLogitRows - 1) / kLogitRows;
    for (int32_t c = 0; c < n_chunks; ++c) {
      const auto at = [&](int64_t i) { return first + static_cast<int32_t>(i * n_scored / n_chunks); };
      score(ids, at(c), at(c + 1), start);
    }
  }

  double mean() const { return nll_.mean(); }
  double perplexity() const { return std::exp(nll_.mean()); }
  double uncertainty() const { return perplexity() * nll_.standard_error(); }  // to first order
  int64_t n_scored() const { return nll_.n(); }
  int64_t n_run() const { return n_run_; }
  double seconds() const { return seconds_; }

 private:
  std::span<const RowResult> forward(std::span<const TokenId> ids, int32_t begin, int32_t end, Want want) {
    Batch batch;
    for (int32_t pos = begin; pos < end; ++pos) {
      const TokenId id = pos == 0 && bos_ >= 0 ? bos_ : ids[static_cast<size_t>(pos)];
      batch.add(seq_.id(), pos, id, want);
    }
    const Stopwatch clock;
    const auto results = engine_.forward(batch);
    seconds_ += clock.seconds();
    n_run_ += end - begin;
    return results;
  }

  void score(std::span<const TokenId> ids, int32_t begin, int32_t end, int64_t start) {
    const auto results = forward(ids, begin, end, Want::kLogits);
    const auto targets = ids.subspan(static_cast<size_t>(begin) + 1, results.size());
    for (size_t i = 0; i < results.size(); ++i) check_row(results[i], targets[i], start + begin + int64_t(i));
    std::vector<double> nll(results.size());
#pragma omp parallel for schedule(dynamic) num_threads(n_threads_)
    for (size_t i = 0; i < results.size(); ++i) {
      nll[i] = negative_log_likelihood(results[i].logits.first(static_cast<size_t>(n_vocab_)), targets[i]);
    }
    for (const double value : nll) nll_.add(value);
  }

  void check_row(const RowResult& result, TokenId target, int64_t at) const {
    check_finite(result, engine_, at);
    if (target < 0 || target >= n_vocab_) {
      throw Error(ExitCode::kRuntime,
                  fmt::format("token {} of the text is id {}, outside the vocabulary of {}", at + 1, target,
                              n_vocab_));
    }
  }

  Engine& engine_;
  int32_t n_ctx_, n_threads_, n_vocab_;
  TokenId bos_;  // -1: none
  Sequence seq_;
  RunningMean nll_;
  int64_t n_run_ = 0;
  double seconds_ = 0;
};

}  // namespace

void check_perplexity_length(size_t n_tokens, int32_t n_ctx) {
  if (n_ctx < kMinPerplexityWindow) {
    throw Error(ExitCode::kUsage, fmt::format("perplexity: a window of {} tokens, and {} are the least",
                                              n_ctx, kMinPerplexityWindow));
  }
  const uint64_t least = 2 * static_cast<uint64_t>(n_ctx);
  if (n_tokens < least) {
    throw Error(ExitCode::kUsage,
                fmt::format("perplexity: the text has {} tokens, and two windows of {} need {}", n_tokens,
                            n_ctx, least));
  }
}

PerplexityResult perplexity(Engine& engine, const Tokenizer& tokenizer, std::span<const TokenId> ids,
                            int32_t n_ctx, const std::function<void(const PerplexityWindow&)>& done,
                            int32_t n_threads) {
  check_perplexity_length(ids.size(), n_ctx);
  const auto window = static_cast<size_t>(n_ctx);
  const auto n_windows = static_cast<int32_t>(ids.size() / window);
  Perplexity run(engine, tokenizer, n_ctx, n_threads);
  for (int32_t w = 0; w < n_windows; ++w) {
    const size_t start = static_cast<size_t>(w) * window;
    run.add(ids.subspan(start, window), static_cast<int64_t>(start));
    if (!std::isfinite(run.uncertainty())) {
      throw Error(
          ExitCode::kRuntime,
          fmt::format("perplexity: not finite after window {} of {}: the mean negative log-likelihood of {} "
                      "tokens is {}",
                      w + 1, n_windows, run.n_scored(), run.mean()));
    }
    done({.index = w,
          .n_windows = n_windows,
          .n_scored = run.n_scored(),
          .perplexity = run.perplexity(),
          .uncertainty = run.uncertainty()});
  }
  return {.n_windows = n_windows,
          .n_tokens = static_cast<int64_t>(ids.size()),
          .n_scored = run.n_scored(),
          .n_run = run.n_run(),
          .perplexity = run.perplexity(),
          .uncertainty = run.uncertainty(),
          .seconds = run.seconds()};
}

}  // namespace minfer
