#include "core/perplexity.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/bench.h"
#include "core/error.h"
#include "core/reference/reference_engine.h"
#include "tests/support/catch.h"
#include "tests/support/oracle.h"
#include "tests/support/parity_case.h"
#include "tests/support/tiny_model.h"

using namespace minfer;
using namespace minfer::test;

namespace {

// An engine whose every row of logits is the same, with a record of what it was asked.
class FlatEngine final : public Engine {
 public:
  explicit FlatEngine(std::vector<float> logits) : logits_(std::move(logits)) {
    hparams_.n_vocab = static_cast<int32_t>(logits_.size());
    hparams_.n_layer = 4;
  }

  const HParams& hparams() const override { return hparams_; }
  std::string description() const override { return "flat"; }
  uint64_t kv_bytes(int32_t n_tokens) const override { return static_cast<uint64_t>(n_tokens); }
  bool kv_fits(int32_t) const override { return true; }
  int32_t max_batch_rows() const override { return 512; }
  SeqId kv_reserve(int32_t n_tokens) override {
    room_ = n_tokens;
    ++n_held;
    return 3;
  }
  void kv_copy(SeqId, SeqId, int32_t) override { FAIL("not asked for"); }
  void kv_truncate(SeqId, int32_t n) override { length_ = n; }
  void kv_free(SeqId) override { --n_held; }
  int32_t kv_length(SeqId) const override { return length_; }

  std::span<const RowResult> forward(const Batch& batch) override {
    batches.push_back(batch);
    results_.clear();
    for (size_t i = 0; i < batch.rows.size(); ++i) {
      REQUIRE(batch.rows[i].pos == length_++);
      REQUIRE(length_ <= room_);
      if (batch.rows[i].want == Want::kNothing) continue;
      REQUIRE(batch.rows[i].want == Want::kLogits);
      const bool is_bad = bad_result == n_results_++;
      results_.push_back({.row = static_cast<int32_t>(i), .bad_layer = is_bad ? 2 : -1, .logits = logits_});
    }
    return results_;
  }

  std::vector<Batch> batches;
  int64_t bad_result = -1;
  int n_held = 0;

 private:
  HParams hparams_;
  std::vector<float> logits_;
  std::vector<RowResult> results_;
  int64_t n_results_ = 0;
  int32_t length_ = 0, room_ = 0;
};

struct Tiny {
  std::vector<std::byte> bytes;
  gguf::Reader file = gguf::Reader::from_bytes(bytes);
  std::unique_ptr<Tokenizer> tokenizer = Tokenizer::from_metadata(file.metadata());

  explicit Tiny(bool adds_bos = false) : bytes(tiny_model(model(adds_bos))) {}

  static TinyModel model(bool adds_bos) {
    TinyModel m;
    m.without_keys = {"tokenizer.ggml.add_bos_token"};
    m.add_keys = [adds_bos](gguf::Writer& out) { out.add_bool("tokenizer.ggml.add_bos_token", adds_bos); };
    return m;
  }
};

std::vector<PerplexityWindow> windows_of(Engine& engine, const Tokenizer& tokenizer,
                                         std::span<const TokenId> ids, int32_t n_ctx,
                                         PerplexityResult* result = nullptr) {
  std::vector<PerplexityWindow> all;
  const auto r =
      perplexity(engine, tokenizer, ids, n_ctx, [&](const PerplexityWindow& w) { all.push_back(w); });
  if (result != nullptr) *result = r;
  return all;
}

// Calls `action`, which must throw Error(code) that says each of `texts`.
void refused(ExitCode code, const std::function<void()>& action, std::initializer_list<const char*> texts) {
  try {
    action();
    FAIL_CHECK("not refused");
  } catch (const Error& error) {
    INFO(error.what());
    CHECK(error.code() == code);
    for (const char* text : texts) CHECK(std::string(error.what()).find(text) != std::string::npos);
  }
}

// Negative log-likelihoods of the scored tokens of one window, by the definition.
std::vector<double> plain_scores(Engine& engine, std::vector<TokenId> window, TokenId bos) {
  const std::vector<TokenId> text = window;
  if (bos >= 0) window[0] = bos;
  const auto logits = run_chunks(engine, window, window.size());
  const size_t n_vocab = logits.size() / window.size();
  std::vector<double> scores;
  for (size_t pos = window.size() / 2; pos + 1 < window.size(); ++pos) {
    const auto row = std::span(logits).subspan(pos * n_vocab, n_vocab);
    double sum = 0;
    for (const float logit : row) sum += std::exp(double{logit});
    scores.push_back(-std::log(std::exp(double{row[static_cast<size_t>(text[pos + 1])]}) / sum));
  }
  return scores;
}

}  // namespace

TEST_CASE("perplexity: is the exponential of the mean over the second halves, window by window",
          "[core][perplexity]") {
  for (const bool adds_bos : {false, true}) {
    const Tiny tiny(adds_bos);
    const auto engine = make_reference_engine(tiny.file, {.n_threads = 1});
    for (const int32_t n_ctx : {3, 4, 21, 150}) {
      CAPTURE(adds_bos, n_ctx);
      const auto n = static_cast<size_t>(n_ctx);
      const auto ids = random_tokens(3 * n + n - 1, kTinyVocab, 7);
      PerplexityResult result;
      const auto windows = windows_of(*engine, *tiny.tokenizer, ids, n_ctx, &result);
      REQUIRE(windows.size() == 3);
      std::vector<double> scores;
      for (size_t w = 0; w < 3; ++w) {
        const auto at = ids.begin() + static_cast<ptrdiff_t>(w * n);
        const auto more = plain_scores(*engine, {at, at + n_ctx}, adds_bos ? kTinyEndOfText : -1);
        scores.insert(scores.end(), more.begin(), more.end());
        double mean = 0, variance = 0;
        for (const double s : scores) mean += s / static_cast<double>(scores.size());
        for (const double s : scores)
          variance += (s - mean) * (s - mean) / static_cast<double>(scores.size());
        const double error =
            scores.size() > 1 ? std::sqrt(variance / static_cast<double>(scores.size() - 1)) : 0;
        CHECK(windows[w].index == static_cast<int32_t>(w));
        CHECK(windows[w].n_windows == 3);
        CHECK(windows[w].n_scored == static_cast<int64_t>(scores.size()));
        CHECK(windows[w].perplexity == Approx(std::exp(mean)).epsilon(1e-9));
        CHECK(windows[w].uncertainty == Approx(std::exp(mean) * error).epsilon(1e-9));
      }
      CHECK(result.perplexity == windows.back().perplexity);
      CHECK(result.uncertainty == windows.back().uncertainty);
      CHECK(result.n_windows == 3);
      CHECK(result.n_tokens == static_cast<int64_t>(ids.size()));
      CHECK(result.n_scored == static_cast<int64_t>(scores.size()));
      CHECK(result.n_run == 3 * (n_ctx - 1));
      CHECK(result.seconds > 0);
    }
  }
}

TEST_CASE("perplexity: logits are asked for where they are scored, in chunks that are large enough",
          "[core][perplexity]") {
  const Tiny tiny;
  for (const int32_t n_ctx : {40, 128, 131, 512, 1025}) {
    CAPTURE(n_ctx);
    FlatEngine engine(std::vector<float>(kTinyVocab, 0.5f));
    const auto ids = random_tokens(2 * static_cast<size_t>(n_ctx), kTinyVocab, 1);
    windows_of(engine, *tiny.tokenizer, ids, n_ctx);
    CHECK(engine.n_held == 0);
    size_t at = 0;
    for (const Batch& batch : engine.batches) {
      const bool is_scored = batch.rows.front().pos >= n_ctx / 2;
      if (is_scored) {
        CHECK(batch.rows.size() > 8);  // fewer take other kernels on a GPU
        CHECK(batch.rows.size() <= 64);
      }
      for (const Row& row : batch.rows) {
        CHECK(row.want == (is_scored ? Want::kLogits : Want::kNothing));
        CHECK(row.token == ids[at++]);
      }
      if (batch.rows.back().pos == n_ctx - 2) ++at;  // the last token of a window is only predicted
    }
    CHECK(at == ids.size());
  }
}

TEST_CASE("perplexity: each window begins with BOS where the tokenizer adds it", "[core][perplexity]") {
  const Tiny tiny(true);
  FlatEngine engine(std::vector<float>(kTinyVocab, 0.0f));
  const std::vector<TokenId> ids = {kTinyEndOfText, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23, 30};
  windows_of(engine, *tiny.tokenizer, ids, 4);
  std::vector<TokenId> fed;
  for (const Batch& batch : engine.batches) {
    for (const Row& row : batch.rows) fed.push_back(row.token);
  }
  CHECK(fed == std::vector<TokenId>{kTinyEndOfText, 1, 2, kTinyEndOfText, 11, 12, kTinyEndOfText, 21, 22});
}

TEST_CASE("perplexity: of equal logits is the size of the vocabulary, whatever a padded head holds beyond",
          "[core][perplexity]") {
  const Tiny tiny;
  std::vector<float> logits(kTinyVocab, -3.0f);
  const auto ids = random_tokens(40, kTinyVocab, 1);
  for (const float padding : {100.0f, std::numeric_limits<float>::quiet_NaN()}) {
    logits.resize(kTinyVocab);
    logits.resize(kTinyVocab + 56, padding);
    FlatEngine engine(logits);
    const auto windows = windows_of(engine, *tiny.tokenizer, ids, 20);
    CHECK(windows.back().perplexity == Approx(kTinyVocab).epsilon(1e-12));
    CHECK(windows.back().uncertainty == Approx(0).margin(1e-9));
  }
}

TEST_CASE("perplexity: logits of any size are weighed without overflow, and an infinite result is refused",
          "[core][perplexity]") {
  const Tiny tiny;
  std::vector<float> logits(kTinyVocab, -2000.0f);
  logits[5] = 2000.0f;
  const std::vector<TokenId> likely(40, 5), unlikely(40, 6);
  FlatEngine sure(logits);
  CHECK(windows_of(sure, *tiny.tokenizer, likely, 20).back().perplexity == 1);
  FlatEngine wrong(logits);
  refused(ExitCode::kRuntime, [&] { windows_of(wrong, *tiny.tokenizer, unlikely, 20); },
          {"not finite after window 1 of 2", "4000"});
  CHECK(wrong.n_held == 0);
}

TEST_CASE("perplexity: a result that is not finite ends it and says where", "[core][perplexity]") {
  const Tiny tiny;
  FlatEngine engine(std::vector<float>(kTinyVocab, 0.0f));
  engine.bad_result = 9 + 3;  // the fourth scored row of the second window: position 13, token 33
  const auto ids = random_tokens(60, kTinyVocab, 1);
  refused(ExitCode::kRuntime, [&] { windows_of(engine, *tiny.tokenizer, ids, 20); }, {"step 33", "layer 2"});
  CHECK(engine.n_held == 0);
}

TEST_CASE("perplexity: too short a text or window is refused with both numbers", "[core][perplexity]") {
  const Tiny tiny;
  FlatEngine engine(std::vector<float>(kTinyVocab, 0.0f));
  const auto ids = random_tokens(39, kTinyVocab, 1);
  refused(ExitCode::kUsage, [&] { windows_of(engine, *tiny.tokenizer, ids, 20); },
          {"39 tokens", "of 20 need 40"});
  refused(ExitCode::kUsage, [&] { windows_of(engine, *tiny.tokenizer, ids, 2); }, {"window of 2", "3 are"});
  refused(ExitCode::kUsage, [&] { windows_of(engine, *tiny.tokenizer, {}, 512); }, {"0 tokens", "1024"});
  CHECK(engine.batches.empty());
}

TEST_CASE("perplexity: an id outside the vocabulary is refused by its number", "[core][perplexity]") {
  const Tiny tiny;
  FlatEngine engine(std::vector<float>(kTinyVocab + 8, 0.0f));
  std::vector<TokenId> ids(40, 1);
  ids[19] = kTinyVocab;
  refused(ExitCode::kRuntime, [&] { windows_of(engine, *tiny.tokenizer, ids, 20); }, {"token 19", "id 264"});
}

TEST_CASE("perplexity: of a text is the truth's after every window (real model)",
          "[core][perplexity][oracle][real]") {
  size_t n_models = 0;
  for (const auto& path : oracle_files("perplexity", ".json")) {
    const auto json = nlohmann::json::parse(read_file(path));
    const std::string text = read_file(path.parent_path() / json.at("text").get<std::string>());
    for (const auto& [name, truth] : json.at("truth_running").items()) {
      const auto model = find_model_like(name);
      if (!model) {
        std::printf("perplexity: no model like %s\n", name.c_str());
        continue;
      }
      ++n_models;
      const auto file = gguf::Reader::open(*model);
      const auto tokenizer = Tokenizer::from_metadata(file.metadata());
      const auto engine = make_reference_engine(file, {.n_vocab_used = tokenizer->n_vocab()});
      const auto windows =
          windows_of(*engine, *tokenizer, tokenizer->encode(text), json.at("n_ctx").get<int32_t>());
      CHECK(windows.size() == json.at("windows").get<size_t>());
      REQUIRE(windows.size() == truth.size());
      double worst = 0;
      for (size_t w = 0; w < windows.size(); ++w) {
        const double off = std::abs(windows[w].perplexity / truth[w].get<double>() - 1);
        CAPTURE(name, w, windows[w].perplexity);
        CHECK(off <= 1e-4);
        worst = std::max(worst, off);
      }
      std::printf("perplexity %s: %.4f +/- %.4f, at most %.5f %% off the truth\n", name.c_str(),
                  windows.back().perplexity, windows.back().uncertainty, 100 * worst);
    }
  }
  if (n_models == 0) MINFER_SKIP("no perplexity oracle, or no model of it");
}
