// What requests have in common is computed once.
#include <algorithm>

#include "core/scheduler.h"
#include "tests/support/catch.h"
#include "tests/support/hashing_engine.h"
#include "tests/support/schedule.h"

using namespace minfer;
using namespace minfer::test;

TEST_CASE("scheduler: a common prefix is computed once, and copied", "[scheduler]") {
  const ScheduleFixture f;
  std::mt19937 random(4);
  const Ids common = random_ids(random, 100);
  std::vector<Request> requests;
  for (int i = 0; i < 10; ++i) requests.push_back(request(joined(common, random_ids(random, 20)), 1));
  for (const int32_t n_parallel : {1, 2, 4, 10}) {
    CAPTURE(n_parallel);
    HashingEngine engine({});
    const ScheduleRun outcome = f.run(engine, requests, {.n_parallel = n_parallel, .n_batch_rows = 64});
    f.check_as_alone(outcome, requests, roomy_engine);
    CHECK(engine.n_rows() == 100 + 10 * 20);
    CHECK(engine.n_copied() == 9 * 100);
    CHECK(outcome.stats.n_reused_tokens == 900);
    CHECK(outcome.stats.n_prompt_tokens == 1200);
    CHECK(outcome.stats.n_generated_tokens == 10);
    CHECK(outcome.results[0].generation.n_reused == 0);
    CHECK(outcome.results[9].generation.n_reused == 100);
    // The last one that is done stays beside those under way.
    CHECK(engine.n_sequences_peak() <= static_cast<size_t>(n_parallel) + 1);
  }
}

TEST_CASE("scheduler: of identical prompts all but the last rows are copied", "[scheduler]") {
  const ScheduleFixture f;
  std::mt19937 random(5);
  const std::vector<Request> requests(6, request(random_ids(random, 80), 4));
  for (const int32_t n_parallel : {1, 6}) {
    HashingEngine engine({});
    const ScheduleRun outcome = f.run(engine, requests, {.n_parallel = n_parallel, .n_batch_rows = 512});
    f.check_as_alone(outcome, requests, roomy_engine);
    CHECK(outcome.stats.n_reused_tokens == 5 * 71);  // the rest is no step of few rows
  }
}

TEST_CASE("scheduler: a prompt that is the beginning of another one, and the other way round",
          "[scheduler]") {
  const ScheduleFixture f;
  std::mt19937 random(6);
  const Ids whole = random_ids(random, 120);
  const Ids begin(whole.begin(), whole.begin() + 60);
  for (const bool shorter_first : {true, false}) {
    const std::vector<Request> requests = {request(shorter_first ? begin : whole, 3),
                                           request(shorter_first ? whole : begin, 3)};
    HashingEngine engine({});
    const ScheduleRun outcome = f.run(engine, requests, {.n_parallel = 2, .n_batch_rows = 16});
    f.check_as_alone(outcome, requests, roomy_engine);
    CHECK(outcome.stats.n_reused_tokens == (shorter_first ? 60 : 51));
  }
}

TEST_CASE("scheduler: the donor is the one that shares most, of equals the earliest", "[scheduler]") {
  const ScheduleFixture f;
  std::mt19937 random(8);
  const Ids a = random_ids(random, 40), ab = joined(a, random_ids(random, 40));
  const auto behind = [&](const Ids& begin) { return request(joined(begin, random_ids(random, 9)), 9); };
  const std::vector<Request> requests = {behind(a), behind(ab), behind(a), behind(ab), behind(ab)};
  HashingEngine engine({});
  const ScheduleRun outcome = f.run(engine, requests, {.n_parallel = 5, .n_batch_rows = 512});
  std::vector<int32_t> n_reused;
  for (const RequestResult& result : outcome.results) n_reused.push_back(result.generation.n_reused);
  CHECK(n_reused == std::vector<int32_t>{0, 40, 40, 80, 80});
  CHECK(engine.copy_sources() == std::vector<SeqId>{0, 0, 1, 1});
  f.check_as_alone(outcome, requests, roomy_engine);
}

TEST_CASE("scheduler: prefixes are shared from 32 tokens on", "[scheduler]") {
  const ScheduleFixture f;
  std::mt19937 random(18);
  for (const int32_t n_common : {31, 32}) {
    const Ids common = random_ids(random, static_cast<size_t>(n_common));
    const std::vector<Request> requests = {request(joined(common, Ids(30, 1)), 2),
                                           request(joined(common, Ids(30, 2)), 2)};
    for (const int32_t n_parallel : {1, 2}) {
      HashingEngine engine({});
      const ScheduleRun outcome = f.run(engine, requests, {.n_parallel = n_parallel});
      CHECK(outcome.results[1].generation.n_reused == (n_common < 32 ? 0 : n_common));
    }
  }
}

TEST_CASE("scheduler: a finished sequence is kept past requests that share nothing with it", "[scheduler]") {
  const ScheduleFixture f;
  std::mt19937 random(9);
  const Ids common = random_ids(random, 64);
  const std::vector<Request> requests = {request(joined(common, random_ids(random, 10)), 2),
                                         request(random_ids(random, 30), 2),
                                         request(joined(common, random_ids(random, 10)), 2)};
  HashingEngine engine({});
  CHECK(f.run(engine, requests, {.n_parallel = 1}).stats.n_reused_tokens == 64);
}

TEST_CASE("scheduler: where KV room is short a finished sequence is taken over, or goes", "[scheduler]") {
  const ScheduleFixture f;
  std::mt19937 random(10);
  const Ids common = random_ids(random, 64);
  const std::vector<Request> requests = {
      request(joined(common, random_ids(random, 30)), 6),  // 100 tokens
      request(joined(common, random_ids(random, 20)), 6),  // its sequence has room for these 90
      request(joined(common, random_ids(random, 30)), 6),  // but theirs has none for 100
  };
  HashingEngine engine({.n_kv_tokens = 120});
  const ScheduleRun outcome = f.run(engine, requests, {.n_parallel = 1});
  f.check_as_alone(outcome, requests, roomy_engine);
  CHECK(outcome.results[1].generation.n_reused == 64);
  CHECK(outcome.results[2].generation.n_reused == 0);
  CHECK(engine.n_copied() == 0);
  CHECK(engine.n_sequences_peak() == 1);
}
