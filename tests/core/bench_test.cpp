#include "core/bench.h"

#include <algorithm>
#include <set>

#include "core/error.h"
#include "core/reference/reference_engine.h"
#include "tests/support/catch.h"
#include "tests/support/tiny_model.h"

using namespace minfer;
using namespace minfer::test;

namespace {

// The reference engine, with a record of what it was asked.
class Watched final : public Engine {
 public:
  explicit Watched(const gguf::Reader& file) : engine_(make_reference_engine(file, {.n_threads = 1})) {}

  const HParams& hparams() const override { return engine_->hparams(); }
  std::string description() const override { return engine_->description(); }
  uint64_t kv_bytes(int32_t n) const override { return engine_->kv_bytes(n); }
  bool kv_fits(int32_t n) const override { return engine_->kv_fits(n); }
  int32_t max_batch_rows() const override { return engine_->max_batch_rows(); }
  SeqId kv_reserve(int32_t n) override {
    reserved.push_back(n);
    return engine_->kv_reserve(n);
  }
  void kv_copy(SeqId src, SeqId dst, int32_t n) override { engine_->kv_copy(src, dst, n); }
  void kv_truncate(SeqId seq, int32_t n) override { engine_->kv_truncate(seq, n); }
  void kv_free(SeqId seq) override {
    ++n_freed;
    engine_->kv_free(seq);
  }
  int32_t kv_length(SeqId seq) const override { return engine_->kv_length(seq); }
  std::span<const RowResult> forward(const Batch& batch) override {
    batches.push_back(batch);
    return engine_->forward(batch);
  }

  std::vector<int32_t> reserved;
  std::vector<Batch> batches;
  int n_freed = 0;

 private:
  std::unique_ptr<Engine> engine_;
};

struct Tiny {
  std::vector<std::byte> bytes = tiny_model();
  gguf::Reader file = gguf::Reader::from_bytes(bytes);
  HParams hparams = HParams::read(file);
  ModelCost cost{hparams, ModelTensors::read(file, hparams), 256};
  Watched engine{file};

  std::vector<Measurement> run(const BenchOptions& options) {
    std::vector<Measurement> all;
    bench(engine, cost, kTinyVocab, options, [&](const Measurement& m) { all.push_back(m); });
    return all;
  }
};

}  // namespace

TEST_CASE("bench: a prefill is one batch behind its depth, once to warm up and then so many times",
          "[core][bench]") {
  Tiny tiny;
  const auto all = tiny.run({.prefill = {20}, .decode = {}, .depth = 7, .n_repetitions = 3});
  REQUIRE(all.size() == 1);
  CHECK(all[0].n_tokens == 20);
  CHECK(all[0].depth == 7);
  CHECK(all[0].n_repetitions == 3);
  CHECK(all[0].seconds.min > 0);
  CHECK(all[0].seconds.min <= all[0].seconds.median);
  CHECK(all[0].seconds.median <= all[0].seconds.max);
  CHECK(all[0].tokens_per_second() == Approx(20 / all[0].seconds.median));
  CHECK(all[0].cost.flops == tiny.cost.prefill(20, 7).flops);
  CHECK(tiny.engine.reserved == std::vector<int32_t>{27});
  CHECK(tiny.engine.n_freed == 1);
  REQUIRE(tiny.engine.batches.size() == 1 + 1 + 3);  // the depth, the warm-up, the repetitions
  CHECK(tiny.engine.batches[0].rows.size() == 7);
  for (size_t i = 1; i < tiny.engine.batches.size(); ++i) {
    const auto& rows = tiny.engine.batches[i].rows;
    REQUIRE(rows.size() == 20);
    CHECK(rows.front().pos == 7);
    CHECK(rows.back().want == Want::kArgmax);
    CHECK(rows[18].want == Want::kNothing);
  }
}

TEST_CASE("bench: decode takes each token from the step before, without the host", "[core][bench]") {
  Tiny tiny;
  const auto all = tiny.run({.prefill = {}, .decode = {6}, .depth = 4, .n_repetitions = 2});
  REQUIRE(all.size() == 1);
  CHECK(tiny.engine.reserved == std::vector<int32_t>{10});
  int n_steps = 0;
  for (const Batch& batch : tiny.engine.batches) {
    if (batch.rows[0].token != kLastArgmax) continue;
    CHECK(batch.rows.size() == 1);
    CHECK(batch.rows[0].pos == 4 + n_steps % 6);
    ++n_steps;
  }
  CHECK(n_steps == 3 * 6);
  double bytes = 0;
  for (int i = 0; i < 6; ++i) bytes += tiny.cost.decode_step(4 + i).bytes;
  CHECK(all[0].cost.bytes == Approx(bytes));
}

TEST_CASE("bench: sequences that decode side by side are each as long, and part at their last token",
          "[core][bench]") {
  Tiny tiny;
  const auto all = tiny.run({.prefill = {}, .decode = {6}, .batch = {3}, .depth = 4, .n_repetitions = 2});
  REQUIRE(all.size() == 1);
  CHECK(all[0].n_tokens == 6);
  CHECK(all[0].n_sequences == 3);
  CHECK(all[0].tokens_per_second() == Approx(3 * 6 / all[0].seconds.median));
  CHECK(tiny.engine.reserved == std::vector<int32_t>{10, 10, 10});
  CHECK(tiny.engine.n_freed == 3);
  int n_steps = 0, n_rewinds = 0;
  for (const Batch& batch : tiny.engine.batches) {
    if (batch.rows.size() != 3 || batch.rows[1].pos != batch.rows[0].pos) continue;
    std::set<SeqId> sequences;
    std::set<TokenId> ids;
    for (const Row& row : batch.rows) {
      sequences.insert(row.seq);
      ids.insert(row.token);
      CHECK(row.want == Want::kArgmax);
      CHECK(row.pos == (ids.contains(kLastArgmax) ? 4 + n_steps % 6 : 3));
    }
    CHECK(sequences.size() == 3);
    if (ids.contains(kLastArgmax)) {
      CHECK(ids.size() == 1);
      ++n_steps;
    } else {
      CHECK(ids.size() == 3);
      ++n_rewinds;
    }
  }
  CHECK(n_steps == 3 * 6);
  CHECK(n_rewinds == 3);
  double bytes = 0, flops = 0;
  for (int i = 0; i < 6; ++i) {
    bytes += tiny.cost.decode_step(4 + i, 3).bytes;
    flops += tiny.cost.decode_step(4 + i, 3).flops;
  }
  CHECK(all[0].cost.bytes == Approx(bytes));
  CHECK(all[0].cost.flops == Approx(flops));
}

TEST_CASE("bench: every number of sequences is measured for every number of tokens", "[core][bench]") {
  Tiny tiny;
  const auto all = tiny.run({.prefill = {8}, .decode = {5, 7}, .batch = {1, 4}, .n_repetitions = 1});
  REQUIRE(all.size() == 5);
  CHECK(all[0].kind == BenchKind::kPrefill);
  CHECK(all[0].n_sequences == 1);
  const std::vector<std::pair<int32_t, int32_t>> expected = {{5, 1}, {5, 4}, {7, 1}, {7, 4}};
  for (size_t i = 0; i < expected.size(); ++i) {
    CHECK(all[i + 1].kind == BenchKind::kDecode);
    CHECK(std::pair(all[i + 1].n_tokens, all[i + 1].n_sequences) == expected[i]);
  }
  CHECK(all[1].choices != all[2].choices);
  CHECK(tiny.run({.prefill = {}, .decode = {5}, .batch = {4}, .n_repetitions = 2})[0].choices ==
        all[2].choices);
}

TEST_CASE("bench: the same work gives the same choices", "[core][bench]") {
  Tiny tiny;
  const BenchOptions options{.prefill = {30}, .decode = {12}, .n_repetitions = 1};
  const auto first = tiny.run(options), second = tiny.run(options);
  REQUIRE(first.size() == 2);
  for (size_t i = 0; i < 2; ++i) CHECK(first[i].choices == second[i].choices);
  CHECK(tiny.run({.prefill = {}, .decode = {13}, .n_repetitions = 1})[0].choices != first[1].choices);
}

TEST_CASE("bench: logits that are not finite end it", "[core][bench]") {
  TinyModel model;
  model.edit_tensor = [](TinyTensor& t) {
    if (t.name == "output_norm.weight") t.values.assign(64, 3e38f);  // times a value past 1.13: Inf
  };
  const auto bytes = tiny_model(model);
  const auto file = gguf::Reader::from_bytes(bytes);
  Tiny tiny;
  Watched broken(file);
  CHECK_THROWS_AS(
      bench(broken, tiny.cost, kTinyVocab, {.prefill = {4}, .decode = {}}, [](const Measurement&) {}), Error);
  CHECK(broken.n_freed == 1);
}

TEST_CASE("bench: random ids are within the vocabulary, spread over it, and the same for a seed",
          "[core][bench]") {
  const auto ids = random_tokens(4000, 100, 1);
  CHECK(std::set<TokenId>(ids.begin(), ids.end()).size() == 100);
  CHECK(*std::min_element(ids.begin(), ids.end()) == 0);
  CHECK(*std::max_element(ids.begin(), ids.end()) == 99);
  CHECK(random_tokens(4000, 100, 1) == ids);
  CHECK(random_tokens(4000, 100, 2) != ids);
}

TEST_CASE("bench: the KV need is that of the longest, and a need past all bounds is refused",
          "[core][bench]") {
  CHECK(bench_kv_tokens({.prefill = {3, 9, 5}, .decode = {4}, .depth = 10}) == 19);
  CHECK(bench_kv_tokens({.prefill = {}, .decode = {4}}) == 5);
  CHECK(bench_kv_tokens({.prefill = {}, .decode = {}}) == 0);
  CHECK(bench_kv_tokens({.prefill = {100}, .decode = {4}, .batch = {1, 8, 2}, .depth = 10}) == 8 * 14);
  CHECK(bench_kv_tokens({.prefill = {200}, .decode = {4}, .batch = {1, 8, 2}, .depth = 10}) == 210);
  CHECK_THROWS_AS(bench_kv_tokens({.prefill = {2147483647}, .decode = {}, .depth = 1}), Error);
  CHECK_THROWS_AS(bench_kv_tokens({.prefill = {}, .decode = {4194304}, .batch = {512}}), Error);
  CHECK(bench_context({.prefill = {5}, .decode = {4}, .batch = {1, 8}, .depth = 10}) == 15);
  CHECK(bench_context({.prefill = {}, .decode = {2147483647}}) == 2147483648);
}

TEST_CASE("bench: the median of an even number of times is between the middle two", "[core][bench]") {
  CHECK(Times::of({4, 1, 3, 2}).median == 2.5);
  CHECK(Times::of({5, 1, 3}).median == 3);
  CHECK(Times::of({5, 1, 3}).min == 1);
  CHECK(Times::of({5, 1, 3}).max == 5);
}
