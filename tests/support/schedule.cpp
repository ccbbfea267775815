#include "tests/support/schedule.h"

#include <set>

#include "core/error.h"
#include "core/generator.h"
#include "tests/support/catch.h"
#include "tests/support/hashing_engine.h"

namespace minfer::test {

ScheduleRun ScheduleFixture::run(Engine& engine, const std::vector<Request>& requests,
                                 const ScheduleOptions& options) const {
  ScheduleRun out;
  out.results.resize(requests.size());
  out.stats = run_requests(engine, *tokenizer, requests, options, [&](size_t index, RequestResult result) {
    REQUIRE(index < requests.size());
    out.order.push_back(index);
    out.results[index] = std::move(result);
  });
  REQUIRE(std::set(out.order.begin(), out.order.end()).size() == requests.size());
  REQUIRE(out.order.size() == requests.size());
  return out;
}

RequestResult ScheduleFixture::alone(Engine& engine, const Request& request) const {
  RequestResult out;
  try {
    out.generation = generate(engine, *tokenizer, request.prompt, request.options,
                              [&](std::string_view piece) { out.text += piece; });
  } catch (const Error& error) {
    out.text.clear();
    out.error = error.what();
  }
  return out;
}

void ScheduleFixture::check_as_alone(const ScheduleRun& run, const std::vector<Request>& requests,
                                     const std::function<std::unique_ptr<Engine>()>& make_engine) const {
  const std::unique_ptr<Engine> engine = make_engine();
  for (size_t i = 0; i < requests.size(); ++i) {
    CAPTURE(i);
    const RequestResult expected = alone(*engine, requests[i]);
    const RequestResult& got = run.results[i];
    CHECK(got.error == expected.error);
    CHECK(got.text == expected.text);
    CHECK(got.generation.ids == expected.generation.ids);
    CHECK(got.generation.n_near_ties == expected.generation.n_near_ties);
    CHECK(got.generation.n_prompt == static_cast<int32_t>(requests[i].prompt.size()));
    if (!expected.error) CHECK(got.generation.reason == expected.generation.reason);
  }
}

Ids random_ids(std::mt19937& random, size_t n) {
  Ids ids(n);
  for (TokenId& id : ids) id = static_cast<TokenId>(random() % 256);
  return ids;
}

Ids joined(Ids a, const Ids& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Request request(Ids prompt, int32_t n_predict) {
  Request r;
  r.prompt = std::move(prompt);
  r.options.n_predict = n_predict;
  return r;
}

std::vector<Request> mixed_requests(size_t n, uint32_t seed) {
  std::mt19937 random(seed);
  const Ids common = random_ids(random, 60);
  std::vector<Request> requests;
  for (size_t i = 0; i < n; ++i) {
    Request r = request(random_ids(random, random() % 12 == 0 ? 0 : 1 + random() % 70),
                        1 + static_cast<int32_t>(random() % 20));
    if (random() % 3 == 0) r.prompt = joined({common.begin(), common.begin() + 20 + random() % 41}, r.prompt);
    if (random() % 10 == 0) r.prompt = random_ids(random, 250 + random() % 10);
    if (random() % 8 == 0) r.options.n_predict = 0;
    if (random() % 12 == 0) r.options.n_predict = -1;
    if (random() % 12 == 0) r.options.n_ctx = 90;
    r.options.ignore_eos = random() % 4 == 0;
    if (random() % 4 == 0) {
      r.options.sampling.temp = 1.5;
      r.options.sampling.top_k = 40;
      r.options.sampling.seed = random();
    }
    if (random() % 6 == 0) r.options.sampling.repeat_penalty = 1.3;
    if (random() % 5 == 0) r.options.stop = {std::string(1, static_cast<char>('a' + random() % 26)), "\n"};
    if (random() % 9 == 0) r.options.n_logprobs = 2;
    requests.push_back(std::move(r));
  }
  return requests;
}

std::unique_ptr<Engine> roomy_engine() {
  return std::make_unique<HashingEngine>(HashingEngine::Options{});
}

}  // namespace minfer::test
