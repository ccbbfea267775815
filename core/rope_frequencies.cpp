#include "core/rope_frequencies.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/error.h"

namespace minfer {
namespace {

// YaRN, section 3.2, "NTK-by-parts": pairs before `low` turn often enough within the context they were
// trained on to be left alone, those from `high` on are interpolated like linear scaling, and between them
// one goes over into the other.
struct YarnRamp {
  double low = 0, high = 0;

  explicit YarnRamp(const HParams& h) {
    // The pair (not a whole number) that turns n times over the original context:
    // n_ctx_orig * base^(-2 i / n_rot) = 2 pi n.
    const auto pair_turning = [&h](double n) {
      return h.n_rot * std::log(h.n_ctx_orig / (2 * std::numbers::pi * n)) /
             (2 * std::log(double{h.rope_freq_base}));
    };
    low = std::max(0.0, std::floor(pair_turning(h.yarn_beta_fast)));
    high = std::min(h.n_rot - 1.0, std::ceil(pair_turning(h.yarn_beta_slow)));
  }

  // 1: as trained; 0: interpolated. The width is kept off zero for a ramp that is a step.
  double share_as_trained(double pair) const {
    return 1 - std::clamp((pair - low) / std::max(0.001, high - low), 0.0, 1.0);
  }
};

void check_factors(const HParams& h, std::span<const float> factors) {
  if (!factors.empty() && factors.size() != static_cast<size_t>(h.n_rot / 2)) {
    throw Error(ExitCode::kModelFile, fmt::format("rope_freqs.weight: {} factors for {} pairs of dims",
                                                  factors.size(), h.n_rot / 2));
  }
  for (size_t i = 0; i < factors.size(); ++i) {
    if (!(factors[i] > 0 && std::isfinite(factors[i]))) {
      throw Error(ExitCode::kModelFile,
                  fmt::format("rope_freqs.weight: factor {} is {}, not positive and finite", i, factors[i]));
    }
  }
}

}  // namespace

RopeFrequencies rope_frequencies(const HParams& h, std::span<const float> factors) {
  check_factors(h, factors);
  const double scale = h.rope_scaling == RopeScaling::kNone ? 1.0 : h.rope_scale;
  const double yarn = h.rope_scaling == RopeScaling::kYarn ? h.yarn_ext_factor : 0.0;

  RopeFrequencies out;
  out.magnitude = h.yarn_attn_factor;
  if (yarn != 0) out.magnitude *= 1 + 0.1 * std::log(scale);  // section 3.4: attention temperature

  out.radians.resize(static_cast<size_t>(h.n_rot / 2));
  for (size_t i = 0; i < out.radians.size(); ++i) {
    const double pair = static_cast<double>(i);
    double trained = std::pow(double{h.rope_freq_base}, -2.0 * pair / h.n_rot);
    if (!factors.empty()) trained /= double{factors[i]};
    const double share = yarn != 0 ? yarn * YarnRamp(h).share_as_trained(pair) : 0.0;
    out.radians[i] = trained * share + trained / scale * (1 - share);
  }
  return out;
}

}  // namespace minfer
