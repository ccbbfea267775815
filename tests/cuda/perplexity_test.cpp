// Perplexity of a text on the GPU, against the truth in f32.
#include "core/perplexity.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "cuda/engine.h"
#include "tests/cuda/gpu.h"
#include "tests/support/catch.h"
#include "tests/support/oracle.h"

using namespace minfer;
using namespace minfer::test;

namespace {

// The worst relative difference to the truth after a window.
double worst_error(const std::filesystem::path& model, std::string_view text, const nlohmann::json& truth,
                   int32_t n_ctx) {
  const auto file = gguf::Reader::open(model);
  const auto tokenizer = Tokenizer::from_metadata(file.metadata());
  const auto engine =
      cu::make_cuda_engine(file, {.n_kv_tokens = n_ctx, .n_vocab_used = tokenizer->n_vocab()});
  double worst = 0;
  size_t n_windows = 0;
  perplexity(*engine, *tokenizer, tokenizer->encode(text), n_ctx, [&](const PerplexityWindow& w) {
    const double off = std::abs(w.perplexity / truth.at(n_windows).get<double>() - 1);
    CAPTURE(w.index, w.perplexity);
    CHECK(off <= 3e-3);
    worst = std::max(worst, off);
    ++n_windows;
  });
  CHECK(n_windows == truth.size());
  return worst;
}

}  // namespace

TEST_CASE("perplexity: on the GPU, within 0.3 % of the truth after every window (real model)",
          "[cuda][perplexity][oracle][real]") {
  MINFER_REQUIRE_GPU();
  size_t n_models = 0;
  for (const auto& path : oracle_files("perplexity", ".json")) {
    const auto json = nlohmann::json::parse(read_file(path));
    const std::string text = read_file(path.parent_path() / json.at("text").get<std::string>());
    for (const auto& [name, truth] : json.at("truth_running").items()) {
      const auto model = find_model_like(name);
      if (!model) {
        // Not the line of MINFER_SKIP: ctest would take the whole case, failures and all, for skipped.
        std::printf("SKIPPED in part: no model %s\n", name.c_str());
        continue;
      }
      ++n_models;
      INFO(name);
      const double worst = worst_error(*model, text, truth, json.at("n_ctx").get<int32_t>());
      std::printf("perplexity %s: at most %.4f %% off the truth\n", name.c_str(), 100 * worst);
    }
  }
  if (n_models == 0) MINFER_SKIP("no perplexity oracle, or no model of it");
}
