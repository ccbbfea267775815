#include "core/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "core/error.h"
#include "tests/support/catch.h"

using namespace minfer;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const std::vector<TokenId> kAccepted = {3, 9, 3, 17, 5, 5, 3, 11, 60, 2, 9, 41, 3};

// What the draws are held against: the same definitions in their plainest form, one sorted list of every
// token.
class Reference {
 public:
  Reference(const SamplerOptions& options, const std::vector<float>& logits,
            const std::vector<TokenId>& accepted)
      : scores_(logits.begin(), logits.end()) {
    for (const auto& [id, bias] : options.logit_bias) scores_[static_cast<size_t>(id)] += bias;
    penalize(options, accepted);
    order_.resize(scores_.size());
    std::iota(order_.begin(), order_.end(), 0);
    std::stable_sort(order_.begin(), order_.end(), [&](TokenId a, TokenId b) { return score(a) > score(b); });
    if (options.top_k > 0) order_.resize(std::min(order_.size(), static_cast<size_t>(options.top_k)));
    keep_top_p(options.top_p);
    const double best = score(order_[0]);
    std::erase_if(order_, [&](TokenId id) { return std::exp(score(id) - best) < options.min_p; });
    temper(options.temp);
  }

  double probability(TokenId id) const {
    const auto found = probability_.find(id);
    return found == probability_.end() ? 0 : found->second;
  }
  size_t n_kept() const { return order_.size(); }

 private:
  double score(TokenId id) const { return scores_[static_cast<size_t>(id)]; }

  void penalize(const SamplerOptions& options, const std::vector<TokenId>& accepted) {
    size_t n = accepted.size();
    if (options.repeat_last_n >= 0) n = std::min(n, static_cast<size_t>(options.repeat_last_n));
    const std::vector<TokenId> recent(accepted.end() - static_cast<std::ptrdiff_t>(n), accepted.end());
    for (const TokenId id : std::set<TokenId>(recent.begin(), recent.end())) {
      double& s = scores_[static_cast<size_t>(id)];
      s = s > 0 ? s / options.repeat_penalty : s * options.repeat_penalty;
      s -= options.presence_penalty;
      s -= options.frequency_penalty * static_cast<double>(std::count(recent.begin(), recent.end(), id));
    }
  }

  void keep_top_p(double p) {
    if (p >= 1) return;
    double total = 0, sum = 0;
    for (const TokenId id : order_) total += std::exp(score(id) - score(order_[0]));
    size_t n = 0;
    do {
      sum += std::exp(score(order_[n++]) - score(order_[0])) / total;
    } while (sum < p && n < order_.size());
    order_.resize(n);
  }

  void temper(double temp) {
    double total = 0;
    for (const TokenId id : order_) total += std::exp((score(id) - score(order_[0])) / temp);
    for (const TokenId id : order_)
      probability_[id] = std::exp((score(id) - score(order_[0])) / temp) / total;
  }

  std::vector<double> scores_;
  std::vector<TokenId> order_;
  std::map<TokenId, double> probability_;
};

// Logits of about normal distribution; no two are equal.
std::vector<float> random_logits(size_t n, double sigma, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<float> logits(n);
  for (float& logit : logits) {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += static_cast<double>(random() >> 11) * 0x1p-53;
    logit = static_cast<float>(sigma * sum);
  }
  return logits;
}

// Chi-square of draws with one set of options against the probabilities of another, over the tokens that are
// expected 10 times or more, the others counted together, in standard deviations from its mean. Tokens that
// cannot be drawn must not be.
double chi_square_z(const SamplerOptions& options, const SamplerOptions& expected_options,
                    const std::vector<float>& logits) {
  constexpr int n_draws = 40000;
  const Reference reference(expected_options, logits, kAccepted);
  Sampler sampler(options, static_cast<int32_t>(logits.size()));
  for (const TokenId id : kAccepted) sampler.accept(id);
  std::vector<double> drawn(logits.size());
  for (int i = 0; i < n_draws; ++i) ++drawn[static_cast<size_t>(sampler.sample(logits))];
  double chi_square = 0, rare_drawn = 0, rare_expected = 0;
  int n_cells = 0;
  for (size_t id = 0; id < logits.size(); ++id) {
    const double expected = n_draws * reference.probability(static_cast<TokenId>(id));
    if (expected == 0) REQUIRE(drawn[id] == 0);
    if (expected < 10) {
      rare_drawn += drawn[id];
      rare_expected += expected;
    } else {
      chi_square += (drawn[id] - expected) * (drawn[id] - expected) / expected;
      ++n_cells;
    }
  }
  if (rare_expected > 0) {
    chi_square += (rare_drawn - rare_expected) * (rare_drawn - rare_expected) / std::max(rare_expected, 1.0);
    ++n_cells;
  }
  const double freedom = std::max(n_cells - 1, 1);
  return (chi_square - freedom) / std::sqrt(2 * freedom);
}

struct Case {
  const char* name;
  SamplerOptions options;
};

std::vector<Case> cases() {
  std::vector<Case> all = {
      {"temp 1", {.temp = 1}},
      {"temp 0.5", {.temp = 0.5}},
      {"temp 2", {.temp = 2}},
      {"top-k", {.temp = 1, .top_k = 5}},
      {"top-k 1", {.temp = 1, .top_k = 1}},
      {"top-k past the vocabulary", {.temp = 1, .top_k = 5000}},
      {"top-p", {.temp = 1, .top_p = 0.8}},
      {"top-p 0", {.temp = 3, .top_p = 0}},
      {"top-p before a high temperature", {.temp = 4, .top_p = 0.5}},
      {"min-p", {.temp = 1, .min_p = 0.05}},
      {"min-p 1", {.temp = 1, .min_p = 1}},
      {"top-k, top-p", {.temp = 1.5, .top_k = 12, .top_p = 0.9}},
      {"top-k, top-p, min-p", {.temp = 0.8, .top_k = 30, .top_p = 0.95, .min_p = 0.1}},
      {"repeat penalty", {.temp = 1, .repeat_penalty = 1.5}},
      {"repeat penalty over a few", {.temp = 1, .repeat_penalty = 1.5, .repeat_last_n = 3}},
      {"repeat penalty over none", {.temp = 1, .repeat_penalty = 1.5, .repeat_last_n = 0}},
      {"repeat reward", {.temp = 1, .repeat_penalty = 0.7, .repeat_last_n = -1}},
      {"presence", {.temp = 1, .repeat_last_n = -1, .presence_penalty = 0.9}},
      {"frequency", {.temp = 1, .repeat_last_n = -1, .frequency_penalty = 0.4}},
      {"frequency, negative", {.temp = 1, .frequency_penalty = -0.4}},
      {"bias", {.temp = 1, .logit_bias = {{3, 2.5}, {4, -kInf}, {5, -1.0}}}},
      {"all",
       {.temp = 0.9,
        .top_k = 40,
        .top_p = 0.97,
        .min_p = 0.01,
        .repeat_penalty = 1.2,
        .repeat_last_n = 8,
        .presence_penalty = 0.3,
        .frequency_penalty = 0.2,
        .logit_bias = {{7, 1.0}, {8, -kInf}}}},
  };
  for (size_t i = 0; i < all.size(); ++i) all[i].options.seed = 100 + i;
  return all;
}

}  // namespace

// With right code z is about standard normal, and the seeds are fixed: 5 leaves room for no wrong cut.
TEST_CASE("sampler: draws are distributed as an f64 reference says", "[sampler]") {
  for (const Case& c : cases()) {
    for (const uint64_t seed : {1, 2}) {
      const auto logits = random_logits(80, 2, seed);
      INFO(c.name << ", logits " << seed);
      const double z = chi_square_z(c.options, c.options, logits);
      CHECK(z < 5);
      CHECK(z > -5);
    }
  }
}

TEST_CASE("sampler: the test of distributions tells what is slightly wrong", "[sampler]") {
  const auto logits = random_logits(80, 1, 1);
  const SamplerOptions plain{.temp = 1};
  CHECK(chi_square_z(plain, plain, logits) < 5);
  for (const SamplerOptions& wrong : {SamplerOptions{.temp = 1.3},
                                      {.temp = 1, .top_k = 20},
                                      {.temp = 1, .top_p = 0.95},
                                      {.temp = 1, .min_p = 0.3},
                                      {.temp = 1, .repeat_penalty = 3},
                                      {.temp = 1, .presence_penalty = 0.6},
                                      {.temp = 1, .frequency_penalty = 0.4},
                                      {.temp = 1, .logit_bias = {{3, 1.0}}}}) {
    CHECK(chi_square_z(wrong, plain, logits) > 5);
  }
}

TEST_CASE("sampler: what is cut off of a large vocabulary is what a whole sort cuts off", "[sampler]") {
  const size_t n_vocab = 20000;
  for (const double sigma : {0.0, 0.5, 3.0, 30.0}) {
    const auto logits = random_logits(n_vocab, sigma, 9);
    for (const SamplerOptions& options : {SamplerOptions{.temp = 50, .top_k = 40},
                                          {.temp = 50, .top_k = 9000},
                                          {.temp = 50, .top_p = 0.3},
                                          {.temp = 50, .top_p = 0.999},
                                          {.temp = 50, .top_k = 500, .top_p = 0.5, .min_p = 0.001}}) {
      const Reference reference(options, logits, {});
      Sampler sampler(options, static_cast<int32_t>(n_vocab));
      std::set<TokenId> drawn;
      const bool is_small = reference.n_kept() <= 40;
      const size_t n_draws = is_small ? 20 * reference.n_kept() : 100;
      for (size_t i = 0; i < n_draws; ++i) {
        const TokenId id = sampler.sample(logits);
        REQUIRE(reference.probability(id) > 0);
        drawn.insert(id);
      }
      // At this temperature what is kept is nearly equally likely: nearly all of a small set is seen.
      if (is_small) CHECK(drawn.size() > reference.n_kept() * 9 / 10);
    }
  }
}

TEST_CASE("sampler: equal scores are cut by id", "[sampler]") {
  const std::vector<float> logits(1000, 1.5F);
  Sampler sampler({.temp = 1, .top_k = 3}, 1000);
  std::set<TokenId> drawn;
  for (int i = 0; i < 200; ++i) drawn.insert(sampler.sample(logits));
  CHECK(drawn == std::set<TokenId>{0, 1, 2});
}

TEST_CASE("sampler: at temperature 0 the likeliest after bias and penalties, the lowest id of equals",
          "[sampler]") {
  const std::vector<float> logits = {0, 5, 4, 5, -3};
  CHECK(Sampler({}, 5).sample(logits) == 1);
  CHECK(Sampler({.logit_bias = {{1, -0.5}}}, 5).sample(logits) == 3);
  CHECK(Sampler({.logit_bias = {{4, 8.0}}}, 5).sample(logits) == 1);
  CHECK(Sampler({.logit_bias = {{4, 8.5}}}, 5).sample(logits) == 4);
  Sampler penalized({.repeat_penalty = 2}, 5);
  penalized.accept(1);
  penalized.accept(3);
  CHECK(penalized.sample(logits) == 2);
  CHECK(Sampler({}, 2).sample(std::vector<float>{0, 1, 9}) == 1);  // rows beyond the vocabulary do not count
}

TEST_CASE("sampler: the same seed gives the same draws, another one others", "[sampler]") {
  const auto logits = random_logits(500, 2, 3);
  const auto draws = [&](uint64_t seed) {
    Sampler sampler({.temp = 1, .seed = seed}, 500);
    std::vector<TokenId> ids(50);
    for (TokenId& id : ids) id = sampler.sample(logits);
    return ids;
  };
  CHECK(draws(7) == draws(7));
  CHECK(draws(7) != draws(8));
}

TEST_CASE("sampler: the draws of a seed stay what they are", "[sampler]") {
  // From the definition: mt19937_64, 53 bits, cumulative sums by id, over eight equally likely tokens.
  const std::vector<float> logits(8);
  std::mt19937_64 random(42);
  Sampler sampler({.temp = 1, .seed = 42}, 8);
  for (int i = 0; i < 100; ++i) CHECK(sampler.sample(logits) == static_cast<TokenId>(random() >> 61));
}

TEST_CASE("sampler: biases that leave nothing, or cannot be, are refused", "[sampler]") {
  const std::vector<float> logits = {0, 1};
  for (const double temp : {0.0, 1.0}) {
    Sampler nothing({.temp = temp, .logit_bias = {{0, -kInf}, {1, -kInf}}}, 2);
    CHECK_THROWS_AS(nothing.sample(logits), Error);
    Sampler one({.temp = temp, .logit_bias = {{1, -kInf}}}, 2);
    CHECK(one.sample(logits) == 0);
  }
  for (const auto& [id, bias] :
       std::vector<std::pair<TokenId, double>>{{2, 0}, {-1, 0}, {0, kInf}, {0, NAN}}) {
    CHECK_THROWS_AS(Sampler({.logit_bias = {{id, bias}}}, 2), Error);
  }
}

TEST_CASE("sampler: logprobs are the row's log-softmax, the likeliest first", "[sampler]") {
  auto logits = random_logits(3000, 3, 11);
  logits[100] = logits[200] = 50;  // of equals the lower id first
  const TokenLogprobs got = token_logprobs(logits, 17, 5);
  long double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<long double>(logit));
  const auto expected = [&](TokenId id) {
    return static_cast<double>(logits[static_cast<size_t>(id)] - std::log(sum));
  };
  CHECK(got.id == 17);
  CHECK(got.logprob == Approx(expected(17)).epsilon(1e-12));
  REQUIRE(got.top.size() == 5);
  CHECK(got.top[0].first == 100);
  CHECK(got.top[1].first == 200);
  for (size_t i = 0; i < 5; ++i) {
    CHECK(got.top[i].second == Approx(expected(got.top[i].first)).epsilon(1e-12));
    if (i > 0) CHECK(got.top[i].second <= got.top[i - 1].second);
  }
  CHECK(token_logprobs(logits, 17, 0).top.empty());
  CHECK(token_logprobs(std::vector<float>{1, 2}, 0, 20).top.size() == 2);
}

TEST_CASE("sampler: the seeds of a run's requests differ, and depend on run and request alone", "[sampler]") {
  std::set<uint64_t> seeds;
  for (uint64_t run = 0; run < 50; ++run) {
    for (uint64_t request = 0; request < 50; ++request) seeds.insert(derive_seed(run, request));
  }
  CHECK(seeds.size() == 2500);
  CHECK(derive_seed(3, 4) == derive_seed(3, 4));
}
