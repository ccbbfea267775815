#include "apps/generation_options.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <random>

namespace minfer {
namespace {

uint64_t draw_seed() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

}  // namespace

int32_t chat_context(const HParams& hparams) {
  constexpr int32_t kMost = 8192;
  return std::min(hparams.n_ctx_train, kMost);
}

uint64_t seed_in_use(const Options& options) {
  const uint64_t seed = options.seed ? *options.seed : draw_seed();
  spdlog::info("seed: {}", seed);
  return seed;
}

GenerateOptions generation_options(const Options& options, const HParams& hparams) {
  GenerateOptions generation = options.generation;
  if (generation.n_ctx > hparams.n_ctx_train) {
    spdlog::warn("-c {}: the model was trained with a context of {}", generation.n_ctx, hparams.n_ctx_train);
  }
  if (options.chat && generation.n_ctx == 0) generation.n_ctx = chat_context(hparams);
  if (generation.sampling.temp > 0) generation.sampling.seed = seed_in_use(options);
  return generation;
}

}  // namespace minfer
