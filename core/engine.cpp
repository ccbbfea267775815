#include "core/engine.h"

#include <spdlog/fmt/fmt.h>

#include "core/error.h"

namespace minfer {

void check_finite(const RowResult& result, const Engine& engine, int64_t step) {
  if (result.finite()) return;
  const int32_t n_layer = engine.hparams().n_layer;
  const std::string where =
      result.bad_layer < n_layer
          ? fmt::format("the output of layer {} (of 0..{})", result.bad_layer, n_layer - 1)
          : fmt::format("the logits (all {} layers were finite)", n_layer);
  throw Error(ExitCode::kRuntime, fmt::format("step {}: {} is not finite (NaN or Inf)", step, where));
}

}  // namespace minfer
