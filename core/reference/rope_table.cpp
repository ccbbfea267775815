#include "core/reference/rope_table.h"

#include <cmath>
#include <utility>

#include "core/rope_frequencies.h"

namespace minfer {

RopeTable::RopeTable(const HParams& h, std::span<const float> factors) : pairing_(h.rope_pairing) {
  RopeFrequencies table = rope_frequencies(h, factors);
  frequencies_ = std::move(table.radians);
  magnitude_ = table.magnitude;
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
