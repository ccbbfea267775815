// Private to gguf: the numeric half of quantize(): scales and codes, before they are packed into a block.
//
// Every scale is first rounded to its stored form, in the direction that leaves no value outside the range,
// and the values are then rounded under the stored scale: so an error is at most half a stored step. The
// types with integer sub-block scales also try the next smaller ones, which clip a little and are finer, and
// keep the least square error.
#pragma once

#include "gguf/block_layouts.h"

namespace minfer::gguf {

// All throw Error where a scale is beyond the largest f16. x: finite values, kBlock or kSuperBlock of them.

struct BlockFit {
  F16Bits d{}, m{};
  int codes[kBlock] = {};
};

// x = code * d, codes lo ... hi with lo < 0 < hi; d may be negative.
BlockFit fit_signed(const float* x, int lo, int hi);
// x = kIq4Values[code] * d
BlockFit fit_iq4(const float* x);
// x = code * d + m, codes 0 ... hi
BlockFit fit_affine(const float* x, int hi);

struct SuperBlockFit {
  F16Bits d{}, dmin{};
  int scales[16] = {}, mins[16] = {};  // of each sub-block
  int codes[kSuperBlock] = {};
};

// In sub-blocks of n_sub values: x = (d * scale) * code, codes lo ... hi, scales -max_scale ... max_scale.
SuperBlockFit fit_signed_super(const float* x, int n_sub, int lo, int hi, int max_scale);
// The same with x = (d * scale) * kIq4Values[code].
SuperBlockFit fit_iq4_super(const float* x, int n_sub, int max_scale);
// x = (d * scale) * code - dmin * min, codes 0 ... hi, scales and mins 0 ... max_scale.
SuperBlockFit fit_affine_super(const float* x, int n_sub, int hi, int max_scale);

// f16 nearest to a number that must not leave the range of f16.
F16Bits nearest_f16(float value);

}  // namespace minfer::gguf
