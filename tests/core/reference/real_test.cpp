// Greedy continuations of real models against the truth, token by token.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/reference/reference_engine.h"
#include "tests/support/catch.h"
#include "tests/support/oracle.h"

namespace minfer {
namespace {

struct Outcome {
  size_t n_equal = 0;     // tokens equal from the start
  size_t n_required = 0;  // up to the first step at which the truth itself is a near tie
  size_t n_true = 0;
};

// Below this margin two right computations in f32 may choose differently.
constexpr double kNearTie = 1e-3;

Outcome run_case(Engine& engine, const nlohmann::json& c) {
  const auto prompt = c.at("prompt_ids").get<std::vector<TokenId>>();
  const auto truth = c.at("generated_ids").get<std::vector<TokenId>>();
  const auto margin = c.at("margin").get<std::vector<double>>();
  REQUIRE_FALSE(truth.empty());
  REQUIRE(margin.size() == truth.size());
  const SeqId seq = engine.kv_reserve(static_cast<int32_t>(prompt.size() + truth.size()));
  Batch batch;
  for (size_t i = 0; i < prompt.size(); ++i) batch.add(seq, static_cast<int32_t>(i), prompt[i]);
  batch.rows.back().want = Want::kArgmax;

  Outcome outcome;
  outcome.n_true = truth.size();
  const auto tie = std::find_if(margin.begin(), margin.end(), [](double m) { return m < kNearTie; });
  outcome.n_required = static_cast<size_t>(tie - margin.begin());
  for (size_t step = 0; step < truth.size(); ++step) {
    const RowResult result = engine.forward(batch)[0];
    check_finite(result, engine, static_cast<int64_t>(step));
    if (result.argmax != truth[step]) break;
    ++outcome.n_equal;
    batch.rows.clear();
    batch.add(seq, static_cast<int32_t>(prompt.size() + step), kLastArgmax, Want::kArgmax);
  }
  engine.kv_free(seq);
  return outcome;
}

}  // namespace

TEST_CASE("real: greedy continuations of every model are the truth's", "[oracle][real]") {
  size_t n_models = 0;
  for (const auto& path : test::oracle_files("real", ".json")) {
    const auto json = nlohmann::json::parse(test::read_file(path));
    const auto model = test::find_model_like(json.at("model").get<std::string>());
    if (!model) {
      std::printf("real: no model like %s\n", json.at("model").get<std::string>().c_str());
      continue;
    }
    ++n_models;
    const gguf::Reader file = gguf::Reader::open(*model);
    const auto engine = make_reference_engine(file, {});
    size_t n_whole = 0, n_cases = 0;
    for (const auto& c : json.at("cases")) {
      const Outcome outcome = run_case(*engine, c);
      CAPTURE(path, n_cases, outcome.n_equal, outcome.n_required, outcome.n_true);
      CHECK(outcome.n_equal >= outcome.n_required);
      n_whole += outcome.n_equal == outcome.n_true;
      ++n_cases;
    }
    std::printf("real %s: %zu of %zu continuations equal to the end\n", path.stem().c_str(), n_whole,
                n_cases);
    CHECK(n_cases > 0);
  }
  if (n_models == 0) MINFER_SKIP("no real models");
}

}  // namespace minfer
