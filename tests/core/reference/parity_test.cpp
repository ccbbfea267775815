// The reference engine against the true logits of tiny models, and against itself: however a prompt is cut,
// whatever stands beside it and however many threads there are, the same bits.
#include <algorithm>
#include <cstring>

#include "core/reference/reference_engine.h"
#include "tests/support/catch.h"
#include "tests/support/oracle.h"
#include "tests/support/parity_case.h"

namespace minfer {
namespace {

namespace fs = std::filesystem;
using test::ParityCase;
using test::read_parity_case;
using test::relative_error;
using test::run_chunks;

using Logits = std::vector<float>;  // [n_tokens, n_vocab]

std::unique_ptr<Engine> load(const gguf::Reader& file, int n_threads = 0) {
  return make_reference_engine(file, {.n_threads = n_threads, .n_vocab_used = 0});
}

void append(Logits& logits, std::span<const RowResult> results) {
  for (const RowResult& r : results) logits.insert(logits.end(), r.logits.begin(), r.logits.end());
}

bool same_bits(const Logits& a, const Logits& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace

TEST_CASE("parity: logits of every tiny model are the truth's", "[oracle][parity]") {
  const auto files = test::oracle_files("parity", ".json");
  if (files.empty()) MINFER_SKIP("no parity oracle");
  for (const fs::path& path : files) {
    const ParityCase c = read_parity_case(path);
    CAPTURE(c.name);
    const gguf::Reader file = gguf::Reader::open(c.model);
    const auto engine = load(file);
    REQUIRE(engine->hparams().n_vocab == c.n_vocab);
    const SeqId seq = engine->kv_reserve(static_cast<int32_t>(c.token_ids.size()));
    Batch batch;
    for (size_t i = 0; i < c.token_ids.size(); ++i) {
      batch.add(seq, static_cast<int32_t>(i), c.token_ids[i], Want::kLogits);
    }
    const auto results = engine->forward(batch);
    REQUIRE(results.size() == c.token_ids.size());

    double sum = 0, worst = 0;
    for (size_t i = 0; i < c.rows.size(); ++i) {
      const RowResult& result = results[static_cast<size_t>(c.rows[i])];
      const double error = relative_error(result.logits, c.truth(i));
      sum += error;
      worst = std::max(worst, error);
    }
    const double mean = sum / static_cast<double>(c.rows.size());
    // Its scores reach 40 and its activations 1.8e5: rounding in f32 alone gives 3e-5.
    const bool has_outliers = c.name.find("outliers") != std::string::npos;
    std::printf("parity %-26s mean %.1e worst %.1e\n", c.name.c_str(), mean, worst);
    CHECK(mean <= (has_outliers ? 1e-4 : 2e-5));

    size_t n_wrong = 0, n_infinite = 0;
    for (size_t i = 0; i < results.size(); ++i) {
      REQUIRE(results[i].row == static_cast<int32_t>(i));
      n_infinite += !results[i].finite();
      n_wrong += results[i].argmax != c.argmax_every_row[i] && results[i].margin >= 1e-3f;
    }
    CHECK(n_infinite == 0);
    CHECK(n_wrong == 0);
  }
}

TEST_CASE("parity: a prompt cut anywhere gives the same bits", "[oracle][parity]") {
  const auto files = test::oracle_files("parity", ".json");
  if (files.empty()) MINFER_SKIP("no parity oracle");
  for (const fs::path& path : files) {
    const ParityCase c = read_parity_case(path);
    CAPTURE(c.name);
    const gguf::Reader file = gguf::Reader::open(c.model);
    const auto engine = load(file);
    const Logits whole = run_chunks(*engine, c.token_ids, c.token_ids.size());
    for (const size_t chunk : {512, 64, 7, 1}) {
      CAPTURE(chunk);
      // The first tokens are enough where a pass over all of them is slow.
      const auto ids = std::span(c.token_ids).first(chunk >= 64 ? c.token_ids.size() : 331);
      const Logits cut = run_chunks(*engine, ids, chunk);
      CHECK(same_bits(cut, Logits(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(cut.size()))));
    }
  }
}

TEST_CASE("parity: the number of threads and the neighbours change no bit", "[oracle][parity]") {
  const auto files = test::oracle_files("parity", ".json");
  if (files.empty()) MINFER_SKIP("no parity oracle");
  for (const fs::path& path : files) {
    const ParityCase c = read_parity_case(path);
    CAPTURE(c.name);
    const gguf::Reader file = gguf::Reader::open(c.model);
    const auto a = std::span(c.token_ids).first(211), b = std::span(c.token_ids).last(150);
    const auto engine = load(file, 1);
    const Logits whole_a = run_chunks(*engine, a, a.size()), whole_b = run_chunks(*engine, b, b.size());
    for (const int n_threads : {2, 3}) CHECK(same_bits(run_chunks(*load(file, n_threads), a, 100), whole_a));

    // Two sequences side by side, in steps of 13 and 5 tokens.
    const SeqId seq_a = engine->kv_reserve(211), seq_b = engine->kv_reserve(150);
    Logits logits_a, logits_b;
    for (size_t at_a = 0, at_b = 0; at_a < a.size() || at_b < b.size();) {
      Batch batch;
      for (int i = 0; i < 5 && at_b < b.size(); ++i, ++at_b) {
        batch.add(seq_b, static_cast<int32_t>(at_b), b[at_b], Want::kLogits);
      }
      const size_t n_b = batch.rows.size();
      for (int i = 0; i < 13 && at_a < a.size(); ++i, ++at_a) {
        batch.add(seq_a, static_cast<int32_t>(at_a), a[at_a], Want::kLogits);
      }
      const auto results = engine->forward(batch);
      append(logits_b, results.first(n_b));
      append(logits_a, results.subspan(n_b));
    }
    CHECK(same_bits(logits_a, whole_a));
    CHECK(same_bits(logits_b, whole_b));
  }
}

}  // namespace minfer
