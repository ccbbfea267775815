// Many sequences in one batch of the CUDA engine: what stands beside a row does not change its bits, and how
// a step gets to the device does not either.
#include <cstdlib>
#include <cstring>

#include "cuda/engine.h"
#include "cuda/kernels/gemm.h"
#include "cuda/workspace.h"
#include "tests/cuda/gpu.h"
#include "tests/support/catch.h"
#include "tests/support/parity_case.h"
#include "tests/support/tiny_model.h"

using namespace minfer;
using namespace minfer::test;

namespace {

constexpr int32_t kRoom = 1100;  // of a sequence: several splits of flash_decode
constexpr size_t kSequences = 130, kLongest = 5;

std::vector<std::byte> small_model(uint32_t head_dim) {
  TinyModel model;
  model.arch = "qwen3";
  model.n_embd = 128;
  model.n_ff = 2048;  // so that down's K goes in parts
  model.head_dim = head_dim;
  return tiny_model(model);
}

TokenId token_at(size_t sequence, int32_t pos) {
  return static_cast<TokenId>((sequence * 37 + static_cast<size_t>(pos) * 11 + 5) % 256);
}

using Logits = std::vector<float>;

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

size_t count_equal(std::span<const Logits> a, std::span<const Logits> b) {
  size_t n = 0;
  for (size_t i = 0; i < a.size(); ++i) n += same_bits(a[i], b[i]);
  return n;
}

// Sequences of different lengths, up to 700 tokens and one of 1019, and steps behind them.
class Crowd {
 public:
  explicit Crowd(uint32_t head_dim, size_t n = kSequences)
      : bytes_(small_model(head_dim)),
        file_(gguf::Reader::from_bytes(bytes_)),
        engine_(cu::make_cuda_engine(
            file_, {.n_kv_tokens = static_cast<int32_t>(n + 3) * kRoom, .f16_cache = cu::F16Cache::kOn})) {
    for (size_t i = 0; i < n; ++i) {
      seqs_.push_back(engine_->kv_reserve(kRoom));
      lengths_.push_back(i == kLongest ? 1019 : static_cast<int32_t>(i * 97 % 700 + 1));
      Batch prompt;
      for (int32_t t = 0; t < lengths_[i]; ++t) prompt.add(seqs_[i], t, token_at(i, t));
      engine_->forward(prompt);
    }
  }

  Engine& engine() { return *engine_; }
  size_t size() const { return seqs_.size(); }

  // One step of sequences first .. first + n, and, where there is one, a piece of a prompt behind them.
  std::vector<Logits> step(size_t first, size_t n, int32_t n_prompt = 0) {
    Batch batch;
    for (size_t i = first; i < first + n; ++i) {
      engine_->kv_truncate(seqs_[i], lengths_[i]);
      batch.add(seqs_[i], lengths_[i], token_at(i, lengths_[i]), Want::kLogits);
    }
    const SeqId guest = n_prompt > 0 ? engine_->kv_reserve(n_prompt) : 0;
    for (int32_t t = 0; t < n_prompt; ++t) batch.add(guest, t, token_at(999, t));
    const auto results = engine_->forward(batch);
    REQUIRE(results.size() == n);
    std::vector<Logits> logits;
    for (size_t i = 0; i < n; ++i) {
      CHECK(results[i].row == static_cast<int32_t>(i));
      CHECK(results[i].finite());
      CHECK(results[i].logits[static_cast<size_t>(results[i].argmax)] == results[i].max_logit);
      logits.emplace_back(results[i].logits.begin(), results[i].logits.end());
    }
    if (n_prompt > 0) engine_->kv_free(guest);
    return logits;
  }

  // Greedy steps of the first n sequences; ids step by step.
  std::vector<TokenId> generate(size_t n, int32_t n_steps, bool by_id, Want want) {
    std::vector<TokenId> ids;
    for (size_t i = 0; i < n; ++i) engine_->kv_truncate(seqs_[i], lengths_[i]);
    for (int32_t step = 0; step < n_steps; ++step) {
      Batch batch;
      for (size_t i = 0; i < n; ++i) {
        const TokenId id = step == 0 ? token_at(i, 0) : by_id ? ids[ids.size() - n + i] : kLastArgmax;
        batch.add(seqs_[i], lengths_[i] + step, id, want);
      }
      const auto results = engine_->forward(batch);
      REQUIRE(results.size() == n);
      for (const RowResult& r : results) {
        CHECK(r.logits.empty() == (want == Want::kArgmax));
        ids.push_back(r.argmax);
      }
    }
    return ids;
  }

 private:
  std::vector<std::byte> bytes_;
  gguf::Reader file_;
  std::unique_ptr<Engine> engine_;
  std::vector<SeqId> seqs_;
  std::vector<int32_t> lengths_;
};

}  // namespace

// Rows of 9 to 64 are one regime, more are another.
TEST_CASE("engine_batch: a row has the same bits beside eight others and beside many", "[cuda][engine]") {
  MINFER_REQUIRE_GPU();
  Crowd crowd(GENERATE(64, 128));
  for (const std::vector<size_t>& regime : {std::vector<size_t>{64, 9, 16, 33}, {130, 65, 100}}) {
    const std::vector<Logits> all = crowd.step(0, regime[0]);
    for (const size_t n : regime) {
      for (const size_t first : {size_t{0}, regime[0] - n}) {
        CAPTURE(n, first);
        const std::vector<Logits> some = crowd.step(first, n);
        CHECK(count_equal(some, std::span(all).subspan(first, n)) == n);
      }
    }
  }
}

TEST_CASE("engine_batch: a decoding row has the same bits beside a prompt", "[cuda][engine]") {
  MINFER_REQUIRE_GPU();
  Crowd crowd(64);
  const std::vector<Logits> few = crowd.step(0, 64), many = crowd.step(0, crowd.size());
  for (const size_t n : {size_t{9}, size_t{20}, size_t{70}}) {
    for (const int32_t n_prompt : {40, 300, 2100}) {  // the last: in two groups
      CAPTURE(n, n_prompt);
      const bool is_few = n + static_cast<size_t>(n_prompt) <= cu::kMaxGemmSplitRows;
      CHECK(count_equal(crowd.step(0, n, n_prompt), std::span(is_few ? few : many).first(n)) == n);
    }
  }
}

TEST_CASE("engine_batch: few rows and many agree within f16", "[cuda][engine]") {
  MINFER_REQUIRE_GPU();
  Crowd crowd(128);
  const std::vector<Logits> all = crowd.step(0, crowd.size());
  for (size_t i = 0; i < 20; ++i) {
    CAPTURE(i);
    CHECK(relative_error(crowd.step(i, 1)[0], all[i]) < 5e-3);
  }
}

// Twelve steps, the first few plain, then captured; at the sixth the longest sequence needs a ninth split, so
// that another graph takes over.
TEST_CASE("engine_batch: by id and by the last argmax, captured and plain, the same tokens",
          "[cuda][engine]") {
  MINFER_REQUIRE_GPU();
  Crowd crowd(64);
  for (const size_t n : {size_t{2}, size_t{8}, size_t{20}, size_t{64}, size_t{100}}) {
    CAPTURE(n);
    const auto ids = crowd.generate(n, 12, false, Want::kArgmax);
    CHECK(crowd.generate(n, 12, true, Want::kArgmax) == ids);
    CHECK(crowd.generate(n, 12, true, Want::kLogits) == ids);
    ::setenv("MINFER_GRAPH", "0", 1);
    CHECK(crowd.generate(n, 12, true, Want::kLogits) == ids);
    ::unsetenv("MINFER_GRAPH");
  }
}

TEST_CASE("engine_batch: an id that is not the argmax goes to the device", "[cuda][engine]") {
  MINFER_REQUIRE_GPU();
  Crowd crowd(64, 1);
  std::vector<TokenId> ids;
  for (int32_t t = 0; t < 40; ++t) ids.push_back(token_at(7, t));  // nobody's argmax
  const Logits sampled = run_chunks(crowd.engine(), ids, 1);
  ::setenv("MINFER_GRAPH", "0", 1);
  const Logits plain = run_chunks(crowd.engine(), ids, 1);
  ::unsetenv("MINFER_GRAPH");
  CHECK(same_bits(sampled, plain));
  CHECK(relative_error(sampled, run_chunks(crowd.engine(), ids, ids.size())) < 5e-3);
}

TEST_CASE("engine_batch: logits for those who asked, in every group of the head", "[cuda][engine]") {
  MINFER_REQUIRE_GPU();
  Crowd crowd(64, 1);
  Engine& engine = crowd.engine();
  constexpr int32_t kRows = 5 * cu::kMaxHeadRows + 3;
  std::vector<TokenId> ids;
  for (int32_t t = 0; t < kRows; ++t) ids.push_back(token_at(3, t));
  const Logits all = run_chunks(engine, ids, ids.size());
  const SeqId seq = engine.kv_reserve(kRows);
  Batch batch;
  const auto want = [](int32_t t) {
    return t % 7 == 0 ? Want::kNothing : t % 3 == 0 ? Want::kArgmax : Want::kLogits;
  };
  for (int32_t t = 0; t < kRows; ++t) batch.add(seq, t, ids[static_cast<size_t>(t)], want(t));
  int32_t n_seen = 0;
  for (const RowResult& r : engine.forward(batch)) {
    CAPTURE(r.row);
    const size_t n_vocab = static_cast<size_t>(engine.hparams().n_vocab);
    if (want(r.row) == Want::kLogits) {
      CHECK(same_bits(r.logits, std::span(all).subspan(static_cast<size_t>(r.row) * n_vocab, n_vocab)));
      CHECK(r.logits[static_cast<size_t>(r.argmax)] == r.max_logit);
    } else {
      CHECK(want(r.row) == Want::kArgmax);
      CHECK(r.logits.empty());
    }
    ++n_seen;
  }
  CHECK(n_seen == kRows - (kRows + 6) / 7);
  engine.kv_free(seq);
}
