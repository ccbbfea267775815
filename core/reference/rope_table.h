// Private to the reference engine: the angles of rotary position embedding.
// Su et al. 2021, RoFormer; Peng et al. 2023, YaRN.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/hparams.h"

namespace minfer {

class RopeTable {
 public:
  // `factors` [n_rot / 2], or empty: each frequency is divided by its factor.
  RopeTable(const HParams& hparams, std::span<const float> factors);

  int32_t n_pairs() const { return static_cast<int32_t>(frequencies_.size()); }
  // cos and sin of every pair at a position, both times YaRN's magnitude, into out [n_pairs, 2].
  void fill(int32_t pos, float* out) const;
  // Turns the first n_rot values of a head.
  void rotate(float* head, const float* cos_sin) const;

 private:
  RopePairing pairing_;
  std::vector<double> frequencies_;  // radians a position, scaling included
  double magnitude_ = 1;
};

}  // namespace minfer
