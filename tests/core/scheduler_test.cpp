#include "core/scheduler.h"

#include <algorithm>

#include "core/error.h"
#include "core/reference/reference_engine.h"
#include "tests/support/catch.h"
#include "tests/support/hashing_engine.h"
#include "tests/support/schedule.h"

using namespace minfer;
using namespace minfer::test;

namespace {

bool same_batches(const HashingEngine& a, const HashingEngine& b) {
  const auto same_row = [](const Row& x, const Row& y) {
    return x.token == y.token && x.pos == y.pos && x.seq == y.seq && x.want == y.want;
  };
  return std::equal(a.batches().begin(), a.batches().end(), b.batches().begin(), b.batches().end(),
                    [&](const Batch& x, const Batch& y) {
                      return std::equal(x.rows.begin(), x.rows.end(), y.rows.begin(), y.rows.end(), same_row);
                    });
}

}  // namespace

TEST_CASE("scheduler: a request's text is what it is alone, whatever stands beside it", "[scheduler]") {
  const ScheduleFixture f;
  const std::vector<Request> requests = mixed_requests(60, 7);
  for (const int32_t n_parallel : {1, 2, 3, 8, 64}) {
    for (const int32_t n_batch_rows : {1, 7, 64, 512}) {
      CAPTURE(n_parallel, n_batch_rows);
      HashingEngine engine({});
      const ScheduleRun outcome =
          f.run(engine, requests, {.n_parallel = n_parallel, .n_batch_rows = n_batch_rows});
      f.check_as_alone(outcome, requests, roomy_engine);
      CHECK(engine.n_sequences() == 0);
      CHECK(outcome.stats.n_parallel_peak <= n_parallel);
      for (const Batch& batch : engine.batches()) {
        REQUIRE_FALSE(batch.rows.empty());
        REQUIRE(batch.rows.size() <= static_cast<size_t>(n_batch_rows));
      }
    }
  }
}

TEST_CASE("scheduler: the reference engine gives every request what it gives it alone", "[scheduler]") {
  const ScheduleFixture f;
  const std::vector<Request> requests = mixed_requests(24, 11);
  const auto make = [&] { return make_reference_engine(f.file, {.n_threads = 2, .n_vocab_used = 0}); };
  for (const ScheduleOptions& options :
       {ScheduleOptions{1, 512}, ScheduleOptions{3, 7}, ScheduleOptions{8, 64}, ScheduleOptions{64, 512},
        ScheduleOptions{5, 1}}) {
    CAPTURE(options.n_parallel, options.n_batch_rows);
    const auto engine = make();
    f.check_as_alone(f.run(*engine, requests, options), requests, make);
  }
}

TEST_CASE("scheduler: the order of the requests changes no text", "[scheduler]") {
  const ScheduleFixture f;
  std::vector<Request> requests = mixed_requests(40, 3);
  HashingEngine engine({});
  ScheduleRun forwards = f.run(engine, requests, {.n_parallel = 4, .n_batch_rows = 32});
  std::reverse(requests.begin(), requests.end());
  const ScheduleRun backwards = f.run(engine, requests, {.n_parallel = 4, .n_batch_rows = 32});
  std::reverse(forwards.results.begin(), forwards.results.end());
  for (size_t i = 0; i < requests.size(); ++i) CHECK(forwards.results[i].text == backwards.results[i].text);
}

TEST_CASE("scheduler: the same requests are scheduled the same way", "[scheduler]") {
  const ScheduleFixture f;
  const std::vector<Request> requests = mixed_requests(60, 5);
  HashingEngine first({.n_kv_tokens = 900}), second({.n_kv_tokens = 900});
  const ScheduleRun a = f.run(first, requests, {.n_parallel = 8, .n_batch_rows = 64});
  const ScheduleRun b = f.run(second, requests, {.n_parallel = 8, .n_batch_rows = 64});
  CHECK(same_batches(first, second));
  CHECK(a.order == b.order);
}

TEST_CASE("scheduler: decoding sequences and prompts share the steps", "[scheduler]") {
  const ScheduleFixture f;
  std::mt19937 random(1);
  std::vector<Request> requests = {request(random_ids(random, 10), 8), request(random_ids(random, 100), 3)};
  for (Request& r : requests) r.options.ignore_eos = true;
  HashingEngine engine({});
  f.run(engine, requests, {.n_parallel = 2, .n_batch_rows = 40});
  // 10 + 30 rows, 1 + 39, then 1 + 31 of the second prompt: nothing is left for a step of few rows.
  REQUIRE(engine.batches().size() >= 3);
  CHECK(engine.batches()[0].rows.size() == 40);
  CHECK(engine.batches()[1].rows.size() == 40);
  CHECK(engine.batches()[1].rows[0].pos == 10);
  CHECK(engine.batches()[2].rows.size() == 32);
  CHECK(engine.batches().size() == 8);  // as many as the longest generation takes
}

TEST_CASE("scheduler: no prompt is cut so that a few rows are left over", "[scheduler]") {
  const ScheduleFixture f;
  std::mt19937 random(2);
  for (size_t n = 9; n < 140; ++n) {
    HashingEngine engine({});
    f.run(engine, {request(random_ids(random, n), 0)}, {.n_parallel = 1, .n_batch_rows = 32});
    for (const Batch& batch : engine.batches()) CHECK(batch.rows.size() > 8);
    CHECK(engine.batches().size() == (n + 31) / 32);
  }
}

TEST_CASE("scheduler: requests wait for KV room in their order; one too big even alone is an error",
          "[scheduler]") {
  const ScheduleFixture f;
  std::mt19937 random(12);
  std::vector<Request> requests = {request(random_ids(random, 30), 10), request(random_ids(random, 40), 10),
                                   request(random_ids(random, 101), 0), request(random_ids(random, 90), 10),
                                   request(random_ids(random, 5), 2)};
  for (Request& r : requests) r.options.ignore_eos = true;
  HashingEngine engine({.n_kv_tokens = 100});
  const ScheduleRun outcome = f.run(engine, requests, {.n_parallel = 5});
  CHECK(outcome.order == std::vector<size_t>{0, 1, 2, 3, 4});
  CHECK(outcome.stats.n_parallel_peak == 2);
  REQUIRE(outcome.results[2].error);
  CHECK(outcome.results[2].error->find("101") != std::string::npos);
  CHECK(outcome.results[2].error->find("100") != std::string::npos);
  for (const size_t i : {0, 1, 3, 4}) CHECK_FALSE(outcome.results[i].error);
}

TEST_CASE("scheduler: one too big is no donor, and room that was promised may be gone", "[scheduler]") {
  const ScheduleFixture f;
  std::mt19937 random(17);
  const Ids common = random_ids(random, 50);
  std::vector<Request> requests;
  for (const size_t n : {30, 60, 20, 10, 30})
    requests.push_back(request(joined(common, random_ids(random, n)), 1));
  for (const bool promises_room : {false, true}) {
    HashingEngine engine({.n_kv_tokens = 100, .promises_room = promises_room});
    const ScheduleRun outcome = f.run(engine, requests, {.n_parallel = 3});
    for (size_t i = 0; i < requests.size(); ++i) CHECK(outcome.results[i].error.has_value() == (i == 1));
    CHECK(outcome.order == std::vector<size_t>{0, 1, 2, 3, 4});
    CHECK(engine.n_sequences() == 0);
  }
}

TEST_CASE("scheduler: a result that is not finite fails its request alone", "[scheduler]") {
  const ScheduleFixture f;
  std::vector<Request> requests = mixed_requests(20, 13);
  for (Request& r : requests) std::replace(r.prompt.begin(), r.prompt.end(), TokenId{200}, TokenId{201});
  requests[4] = request(Ids(50, 200), 10);
  requests[5] = request(joined(Ids(50, 200), Ids(20, 3)), 10);  // shares what is bad
  const auto make = [] { return std::make_unique<HashingEngine>(HashingEngine::Options{.bad_token = 200}); };
  const auto engine = make();
  const ScheduleRun outcome = f.run(*engine, requests, {.n_parallel = 6, .n_batch_rows = 64});
  f.check_as_alone(outcome, requests, make);
  REQUIRE(outcome.results[4].error);
  CHECK(outcome.results[4].error->find("not finite") != std::string::npos);
  CHECK(outcome.results[5].error);
  CHECK(outcome.results[4].text.empty());
  CHECK(engine->n_sequences() == 0);
}

TEST_CASE("scheduler: an interruption, and whatever `done` throws, end the run and free everything",
          "[scheduler]") {
  const ScheduleFixture f;
  const std::vector<Request> requests = mixed_requests(30, 14);
  for (const int32_t step : {0, 1, 7, 20}) {
    HashingEngine engine({.interrupt_at_step = step});
    try {
      f.run(engine, requests, {.n_parallel = 4, .n_batch_rows = 32});
      FAIL("not interrupted");
    } catch (const Error& error) {
      CHECK(error.code() == ExitCode::kInterrupted);
    }
    CHECK(engine.n_sequences() == 0);
  }
  for (const int n_before : {0, 1, 9}) {
    HashingEngine engine({});
    int n_done = 0;
    const auto done = [&](size_t, RequestResult) {
      if (n_done++ == n_before) throw Error(ExitCode::kRuntime, "full");
    };
    CHECK_THROWS_AS(run_requests(engine, *f.tokenizer, requests, {.n_parallel = 4}, done), Error);
    CHECK(engine.n_sequences() == 0);
    CHECK(n_done == n_before + 1);
  }
}

TEST_CASE("scheduler: progress is told after every step, and the figures add up", "[scheduler]") {
  const ScheduleFixture f;
  const std::vector<Request> requests = mixed_requests(30, 15);
  HashingEngine engine({});
  std::vector<ScheduleStats> seen;
  int64_t n_generated = 0, n_prompt = 0, n_near_ties = 0;
  const ScheduleStats last = run_requests(
      engine, *f.tokenizer, requests, {.n_parallel = 4, .n_batch_rows = 32},
      [&](size_t, RequestResult result) {
        if (result.error) return;
        n_generated += static_cast<int64_t>(result.generation.ids.size());
        n_prompt += result.generation.n_prompt;
        n_near_ties += result.generation.n_near_ties;
        CHECK(result.generation.prefill_seconds >= 0);
        CHECK(result.generation.decode_seconds >= 0);
        CHECK(result.queue_seconds >= 0);
      },
      [&](const ScheduleStats& stats) { seen.push_back(stats); });
  REQUIRE(seen.size() == engine.batches().size());
  for (size_t i = 0; i < seen.size(); ++i) CHECK(seen[i].n_steps == static_cast<int64_t>(i) + 1);
  CHECK(last.n_generated_tokens == n_generated);
  CHECK(last.n_prompt_tokens == n_prompt);
  CHECK(last.n_near_ties == n_near_ties);
  CHECK(n_near_ties > 0);
  CHECK(last.n_parallel_peak == 4);
}

TEST_CASE("scheduler: no requests, and options that cannot be", "[scheduler]") {
  const ScheduleFixture f;
  HashingEngine engine({});
  CHECK(f.run(engine, {}, {}).stats.n_steps == 0);
  for (const ScheduleOptions& options :
       {ScheduleOptions{0, 512}, ScheduleOptions{1, 0}, ScheduleOptions{-1, -1}}) {
    CHECK_THROWS_AS(f.run(engine, {}, options), Error);
  }
}

// The engine checks every batch, copy and reservation; this checks that all of them come out as alone.
TEST_CASE("scheduler: 2,000 random requests through rooms and steps of many sizes", "[scheduler]") {
  const ScheduleFixture f;
  std::mt19937 random(16);
  for (uint32_t round = 0; round < 20; ++round) {
    const std::vector<Request> requests = mixed_requests(100, 1000 + round);
    const HashingEngine::Options room{.n_kv_tokens = 256 + static_cast<int64_t>(random() % 2000)};
    const ScheduleOptions options{.n_parallel = 1 + static_cast<int32_t>(random() % 20),
                                  .n_batch_rows = 1 + static_cast<int32_t>(random() % 100)};
    CAPTURE(round, room.n_kv_tokens, options.n_parallel, options.n_batch_rows);
    HashingEngine engine(room);
    f.check_as_alone(f.run(engine, requests, options), requests, roomy_engine);
    CHECK(engine.n_sequences() == 0);
  }
}
