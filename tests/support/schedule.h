// Requests of every kind, a run of them through the scheduler, and what generate() makes of each.
#pragma once

#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "core/scheduler.h"
#include "gguf/reader.h"
#include "tests/support/tiny_model.h"

namespace minfer::test {

using Ids = std::vector<TokenId>;

struct ScheduleRun {
  std::vector<RequestResult> results;  // by request
  std::vector<size_t> order;           // of completion
  ScheduleStats stats;
};

struct ScheduleFixture {
  std::vector<std::byte> bytes = tiny_model();
  gguf::Reader file = gguf::Reader::from_bytes(bytes);
  std::unique_ptr<Tokenizer> tokenizer = Tokenizer::from_metadata(file.metadata());

  // Checks that every request is done once.
  ScheduleRun run(Engine& engine, const std::vector<Request>& requests, const ScheduleOptions& options) const;
  // What generate() makes of it with the engine to itself.
  RequestResult alone(Engine& engine, const Request& request) const;
  void check_as_alone(const ScheduleRun& run, const std::vector<Request>& requests,
                      const std::function<std::unique_ptr<Engine>()>& make_engine) const;
};

Ids random_ids(std::mt19937& random, size_t n);
Ids joined(Ids a, const Ids& b);
Request request(Ids prompt, int32_t n_predict);

// Every kind there is: lengths from none to too long, greedy and sampled, stop strings, penalties, -n 0 and
// -1, ends of generation, common beginnings.
std::vector<Request> mixed_requests(size_t n, uint32_t seed);

// A HashingEngine with room for all.
std::unique_ptr<Engine> roomy_engine();

}  // namespace minfer::test
