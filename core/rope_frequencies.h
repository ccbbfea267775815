// How fast every pair of dims turns. Su et al. 2021, RoFormer; Peng et al. 2023, YaRN.
#pragma once

#include <span>
#include <vector>

#include "core/hparams.h"

namespace minfer {

struct RopeFrequencies {
  std::vector<double> radians;  // [n_rot / 2] angle of pair i at position p: p * radians[i]; scaling included
  double magnitude = 1;         // what cos and sin are multiplied by (YaRN's mscale)
};

// `factors` [n_rot / 2], or empty: each frequency as trained is divided by its factor (rope_freqs.weight).
// Which dims make up a pair (NORM, NEOX) makes no difference here. Throws Error(kModelFile) where `factors`
// has another length or a factor that is not positive and finite.
RopeFrequencies rope_frequencies(const HParams& hparams, std::span<const float> factors);

}  // namespace minfer
