#include "core/sampler.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <ranges>

#include "core/error.h"

namespace minfer {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// The order in which tokens are cut off: by descending score, of equals the lower id first.
struct Place {
  double score = -kInf;
  TokenId id = std::numeric_limits<TokenId>::max();
  bool before(const Place& other) const {
    return score > other.score || (score == other.score && id < other.id);
  }
};

// What truncation leaves of the scores. Top-k, top-p and min-p each keep a prefix of the order above, so what
// survives them all is told by its last member, and no sorted copy of the vocabulary is ever made.
class Prefix {
 public:
  Prefix(std::span<const double> scores, double max) : scores_(scores), max_(max) {}

  bool keeps(TokenId id) const { return !last_.before({score(id), id}); }

  void keep_top_k(int32_t k) {
    if (k >= n()) return;
    keep_weight([](double) { return 1.0; }, [k](double) { return static_cast<double>(k); });
  }

  // The shortest prefix that has the share p of the probability. Holtzman et al. 2020, The Curious Case of
  // Neural Text Degeneration.
  void keep_top_p(double p) {
    keep_weight([this](double score) { return std::exp(score - max_); },
                [p](double total) { return p * total; });
  }

  // Nguyen et al. 2024, Turning Up the Heat: Min-p Sampling.
  void keep_min_p(double p) {
    const Place last{.score = max_ + std::log(p), .id = std::numeric_limits<TokenId>::max()};
    if (last.before(last_)) last_ = last;
  }

 private:
  // Bins of scores below the largest, by which the end of a prefix is found without a sort: only the bin that
  // it lies in is sorted. The last one is open.
  static constexpr int kBins = 4096;
  static constexpr double kBinsPerUnit = 128;

  int bin(double score) const {
    return static_cast<int>(std::min<double>((max_ - score) * kBinsPerUnit, kBins - 1));
  }
  TokenId n() const { return static_cast<TokenId>(scores_.size()); }
  double score(TokenId id) const { return scores_[static_cast<size_t>(id)]; }

  // Ends the prefix where its weight reaches least(what the whole prefix weighs).
  template <typename Weight, typename Least>
  void keep_weight(const Weight& weight, const Least& least_of) {
    std::vector<double> of_bin(kBins);
    for (TokenId id = 0; id < n(); ++id) {
      if (keeps(id)) of_bin[static_cast<size_t>(bin(score(id)))] += weight(score(id));
    }
    const double least = least_of(std::accumulate(of_bin.begin(), of_bin.end(), 0.0));
    double sum = 0;
    int b = 0;
    while (b + 1 < kBins && sum + of_bin[static_cast<size_t>(b)] < least)
      sum += of_bin[static_cast<size_t>(b++)];
    std::vector<Place> members;
    for (TokenId id = 0; id < n(); ++id) {
      if (keeps(id) && bin(score(id)) == b) members.push_back({score(id), id});
    }
    std::ranges::sort(members, [](const Place& x, const Place& y) { return x.before(y); });
    for (const Place& place : members) {
      last_ = place;
      sum += weight(place.score);
      if (sum >= least) return;
    }
  }

  std::span<const double> scores_;
  double max_;
  Place last_;
};

// In [0, 1), all 53 bits of a double. A distribution of the standard library would be the library's own.
double uniform(std::mt19937_64& random) {
  return static_cast<double>(random() >> 11) * 0x1p-53;
}

bool has_penalties(const SamplerOptions& o) {
  return o.repeat_last_n != 0 &&
         (o.repeat_penalty != 1 || o.presence_penalty != 0 || o.frequency_penalty != 0);
}

// Steele, Lea, Flood 2014, Fast Splittable Pseudorandom Number Generators: the finalizer of SplitMix64.
uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

}  // namespace

Sampler::Sampler(const SamplerOptions& options, int32_t n_vocab)
    : options_(options), n_vocab_(n_vocab), random_(options.seed) {
  for (const auto& [id, bias] : options_.logit_bias) {
    if (id < 0 || id >= n_vocab) {
      throw Error(ExitCode::kUsage,
                  fmt::format("logit bias (--logit-bias): no token {}, the vocabulary has {} (0..{})", id,
                              n_vocab, n_vocab - 1));
    }
    if (std::isnan(bias) || bias == kInf) {
      throw Error(
          ExitCode::kUsage,
          fmt::format("logit bias (--logit-bias): {} for token {}, needs a number or -inf", bias, id));
    }
  }
}

bool Sampler::needs_logits(const SamplerOptions& options) {
  return options.temp > 0 || !options.logit_bias.empty() || has_penalties(options);
}

void Sampler::accept(TokenId id) {
  if (!has_penalties(options_)) return;
  accepted_.push_back(id);
  ++n_recent_[id];
  const auto window = static_cast<size_t>(options_.repeat_last_n);
  if (options_.repeat_last_n < 0 || accepted_.size() <= window) return;
  const auto oldest = n_recent_.find(accepted_[accepted_.size() - 1 - window]);
  if (--oldest->second == 0) n_recent_.erase(oldest);
}

TokenId Sampler::sample(std::span<const float> logits) {
  scores_.assign(logits.begin(), logits.begin() + n_vocab_);
  for (const auto& [id, bias] : options_.logit_bias) scores_[static_cast<size_t>(id)] += bias;
  penalize();
  const auto best = std::ranges::max_element(scores_);  // the first of equals
  if (!std::isfinite(*best)) {
    throw Error(ExitCode::kRuntime,
                fmt::format("sampling: the likeliest token has the logit {} after biases and "
                            "penalties, which leaves nothing to choose from",
                            *best));
  }
  return options_.temp > 0 ? draw(*best) : static_cast<TokenId>(best - scores_.begin());
}

// Repetition: Keskar et al. 2019, CTRL, with the sign taken into account as llama.cpp does it. Presence and
// frequency: as OpenAI's API defines them.
void Sampler::penalize() {
  for (const auto& [id, n] : n_recent_) {
    if (id < 0 || id >= n_vocab_) continue;
    double& score = scores_[static_cast<size_t>(id)];
    score = score > 0 ? score / options_.repeat_penalty : score * options_.repeat_penalty;
    score -= n * options_.frequency_penalty + options_.presence_penalty;
  }
}

// The cumulative sum runs by ascending id: a rounding of the logits then moves the borders between tokens,
// but never their order.
TokenId Sampler::draw(double max_score) {
  Prefix kept(scores_, max_score);
  if (options_.top_k > 0) kept.keep_top_k(options_.top_k);
  if (options_.top_p < 1) kept.keep_top_p(options_.top_p);
  if (options_.min_p > 0) kept.keep_min_p(options_.min_p);

  double total = 0;
  for (TokenId id = 0; id < n_vocab_; ++id) {
    double& score = scores_[static_cast<size_t>(id)];
    score = kept.keeps(id) ? std::exp((score - max_score) / options_.temp) : 0;
    total += score;
  }
  const double target = uniform(random_) * total;
  double sum = 0;
  TokenId chosen = 0;
  for (TokenId id = 0; id < n_vocab_; ++id) {
    const double weight = scores_[static_cast<size_t>(id)];
    if (weight <= 0) continue;
    chosen = id;  // the last one with a weight, should `target` be rounded up to the total
    if ((sum += weight) > target) break;
  }
  return chosen;
}

TokenLogprobs token_logprobs(std::span<const float> logits, TokenId id, int32_t n_top) {
  const double max = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - max);
  const double log_sum = max + std::log(sum);
  const auto logprob = [&](TokenId t) { return logits[static_cast<size_t>(t)] - log_sum; };

  const auto n_vocab = static_cast<TokenId>(logits.size());
  std::vector<TokenId> top(static_cast<size_t>(std::clamp(n_top, 0, n_vocab)));
  std::ranges::partial_sort_copy(std::views::iota(0, n_vocab), top, [&](TokenId x, TokenId y) {
    const float a = logits[static_cast<size_t>(x)], b = logits[static_cast<size_t>(y)];
    return a > b || (a == b && x < y);
  });
  TokenLogprobs out{.id = id, .logprob = logprob(id), .top = {}};
  for (const TokenId t : top) out.top.emplace_back(t, logprob(t));
  return out;
}

uint64_t derive_seed(uint64_t run_seed, uint64_t index) {
  constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;
  return mix(mix(run_seed + kGolden) + (index + 1) * kGolden);
}

}  // namespace minfer
