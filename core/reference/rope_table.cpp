#include "core/reference/rope_table.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace minfer {
namespace {

// Pairs from `low` down to 0 turn often enough within the trained context to be left alone, those from `high`
// on are interpolated, and between them one goes over into the other. (YaRN, section 3.2, "NTK-by-parts".)
struct YarnRamp {
  double low, high;

  explicit YarnRamp(const HParams& h) {
    // The pair that turns n times within the original context.
    const auto pair_of = [&](double n_turns) {
      return h.n_rot * std::log(h.n_ctx_orig / (n_turns * 2 * std::numbers::pi)) /
             (2 * std::log(double{h.rope_freq_base}));
    };
    low = std::max(0.0, std::floor(pair_of(h.yarn_beta_fast)));
    high = std::min(h.n_rot - 1.0, std::ceil(pair_of(h.yarn_beta_slow)));
  }

  // 1: as trained; 0: interpolated.
  double extrapolated(int32_t pair) const {
    return 1 - std::clamp((pair - low) / std::max(0.001, high - low), 0.0, 1.0);
  }
};

}  // namespace

RopeTable::RopeTable(const HParams& h, std::span<const float> factors)
    : pairing_(h.rope_pairing),
      frequencies_(static_cast<size_t>(h.n_rot / 2)),
      magnitude_(h.yarn_attn_factor) {
  const double scale = h.rope_scaling == RopeScaling::kNone ? 1.0 : h.rope_scale;
  const double ext = h.rope_scaling == RopeScaling::kYarn ? h.yarn_ext_factor : 0.0;
  const YarnRamp ramp(h);
  for (int32_t i = 0; i < n_pairs(); ++i) {
    const double trained =
        std::pow(double{h.rope_freq_base}, -2.0 * i / h.n_rot) / (factors.empty() ? 1.0 : factors[i]);
    const double mix = ext * ramp.extrapolated(i);
    frequencies_[i] = trained * mix + trained / scale * (1 - mix);
  }
  if (ext != 0) magnitude_ *= 1 + 0.1 * std::log(scale);
}

void RopeTable::fill(int32_t pos, float* out) const {
  for (int32_t i = 0; i < n_pairs(); ++i) {
    const double angle = pos * frequencies_[i];
    out[2 * i] = static_cast<float>(magnitude_ * std::cos(angle));
    out[2 * i + 1] = static_cast<float>(magnitude_ * std::sin(angle));
  }
}

void RopeTable::rotate(float* head, const float* cos_sin) const {
  const int32_t n = n_pairs();
  const int32_t step = pairing_ == RopePairing::kNorm ? 2 : 1;
  const int32_t partner = pairing_ == RopePairing::kNorm ? 1 : n;
  for (int32_t i = 0; i < n; ++i) {
    float& a = head[i * step];
    float& b = head[i * step + partner];
    const float c = cos_sin[2 * i], s = cos_sin[2 * i + 1];
    const float turned = a * c - b * s;
    b = a * s + b * c;
    a = turned;
  }
}

}  // namespace minfer
