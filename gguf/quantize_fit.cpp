#include "gguf/quantize_fit.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "gguf/dequantize.h"
#include "gguf/error.h"

namespace minfer::gguf {
namespace {

float value_of(F16Bits number) {
  return f16_to_f32(static_cast<uint16_t>(number.bytes[0] | number.bytes[1] << 8));
}

F16Bits pack(uint16_t bits, float value) {
  if ((bits & 0x7c00u) == 0x7c00u) throw Error(std::to_string(value) + " is beyond 65504, the largest f16");
  return {{static_cast<uint8_t>(bits & 0xff), static_cast<uint8_t>(bits >> 8)}};
}

// The f16 next to `value` on the side away from zero, or the value itself.
F16Bits away_from_zero(float value) {
  uint16_t bits = f32_to_f16(value);
  if (std::fabs(f16_to_f32(bits)) < std::fabs(value)) ++bits;
  return pack(bits, value);
}

// The largest f16 that is not above `value`.
F16Bits downwards(float value) {
  uint16_t bits = f32_to_f16(value);
  if (f16_to_f32(bits) > value) bits = value < 0 ? static_cast<uint16_t>((bits | 0x8000u) + 1) : bits - 1;
  return pack(bits, value);
}

struct Range {
  float min = 0, max = 0;
};

// Zero is always inside: each type has it as a level.
Range range_with_zero(const float* x, int n) {
  Range range;
  for (int i = 0; i < n; ++i) {
    range.min = std::min(range.min, x[i]);
    range.max = std::max(range.max, x[i]);
  }
  return range;
}

// Levels lo, lo + 1, ... hi; the code of a level is the level itself.
struct Uniform {
  int lo, hi;
  int code(float ratio) const {
    return static_cast<int>(std::rint(std::clamp(ratio, static_cast<float>(lo), static_cast<float>(hi))));
  }
  static int level(int code) { return code; }
};

struct Iq4Codebook {
  int lo = kIq4Values[0], hi = kIq4Values[15];
  // As many as there are borders between two levels below `ratio`.
  static int code(float ratio) {
    int code = 0;
    for (int i = 0; i < 15; ++i) code += ratio * 2 > static_cast<float>(kIq4Values[i] + kIq4Values[i + 1]);
    return code;
  }
  static int level(int code) { return kIq4Values[code]; }
};

float ratio(float value, float step) {
  return step == 0 ? 0 : value / step;
}

// The smallest step, of either sign, whose levels lo ... hi reach all of x.
float signed_step(const float* x, int n, int lo, int hi) {
  const Range range = range_with_zero(x, n);
  const auto low = static_cast<float>(lo), high = static_cast<float>(hi);
  const float up = std::max(range.max / high, range.min / low);
  const float down = std::max(-range.max / low, -range.min / high);
  return up <= down ? up : -down;
}

template <class Levels>
BlockFit fit_levels(const Levels& levels, const float* x) {
  BlockFit fit;
  fit.d = away_from_zero(signed_step(x, kBlock, levels.lo, levels.hi));
  const float d = value_of(fit.d);
  for (int j = 0; j < kBlock; ++j) fit.codes[j] = levels.code(ratio(x[j], d));
  return fit;
}

// The smallest integer scale whose step is not below `step`.
int covering_scale(float step, float d, int max_scale) {
  return std::min(static_cast<int>(std::ceil(ratio(std::fabs(step), d))), max_scale);
}

constexpr int kScalesTried = 3;  // the covering one and the next below
constexpr int kMinsTried = 2;

// What a sub-block is stored with; x = step * level - min.
struct SubScales {
  int scale, min;
};

template <class Levels>
float square_error(const Levels& levels, const float* x, int n, float step, float min) {
  float sum = 0;
  for (int i = 0; i < n; ++i) {
    const float y = step * static_cast<float>(levels.level(levels.code(ratio(x[i] + min, step)))) - min;
    sum += (x[i] - y) * (x[i] - y);
  }
  return sum;
}

// The best of the scales from `covering` towards zero: codes and all go into sub-block s of `fit`.
template <class Levels>
void fit_sub_block(const Levels& levels, const float* x, int n_sub, SubScales covering, int s,
                   SuperBlockFit& fit) {
  const float d = value_of(fit.d), dmin = value_of(fit.dmin);
  const int sign = covering.scale < 0 ? -1 : 1;
  const int magnitude = sign * covering.scale;
  float least = INFINITY;
  for (int min = covering.min; min >= 0 && min > covering.min - kMinsTried; --min) {
    for (int scale = magnitude; scale >= 0 && scale > magnitude - kScalesTried; --scale) {
      const float step = d * static_cast<float>(sign * scale);
      const float error = square_error(levels, x, n_sub, step, dmin * static_cast<float>(min));
      if (error < least) {
        least = error;
        fit.scales[s] = sign * scale;
        fit.mins[s] = min;
      }
    }
  }
  const float step = d * static_cast<float>(fit.scales[s]), min = dmin * static_cast<float>(fit.mins[s]);
  for (int i = 0; i < n_sub; ++i) fit.codes[s * n_sub + i] = levels.code(ratio(x[i] + min, step));
}

template <class Levels>
SuperBlockFit fit_levels_super(const Levels& levels, const float* x, int n_sub, int max_scale) {
  SuperBlockFit fit;
  float steps[16], largest = 0;
  for (int s = 0; s < kSuperBlock / n_sub; ++s) {
    steps[s] = signed_step(x + s * n_sub, n_sub, levels.lo, levels.hi);
    largest = std::max(largest, std::fabs(steps[s]));
  }
  fit.d = away_from_zero(largest / static_cast<float>(max_scale));
  for (int s = 0; s < kSuperBlock / n_sub; ++s) {
    const int scale = covering_scale(steps[s], value_of(fit.d), max_scale);
    fit_sub_block(levels, x + s * n_sub, n_sub, {steps[s] < 0 ? -scale : scale, 0}, s, fit);
  }
  return fit;
}

}  // namespace

F16Bits nearest_f16(float value) {
  return pack(f32_to_f16(value), value);
}

BlockFit fit_signed(const float* x, int lo, int hi) {
  return fit_levels(Uniform{lo, hi}, x);
}

BlockFit fit_iq4(const float* x) {
  return fit_levels(Iq4Codebook{}, x);
}

BlockFit fit_affine(const float* x, int hi) {
  BlockFit fit;
  const auto [min, max] = std::minmax_element(x, x + kBlock);
  fit.m = downwards(*min);
  const float m = value_of(fit.m);
  fit.d = away_from_zero((*max - m) / static_cast<float>(hi));
  const float d = value_of(fit.d);
  for (int j = 0; j < kBlock; ++j) fit.codes[j] = Uniform{0, hi}.code(ratio(x[j] - m, d));
  return fit;
}

SuperBlockFit fit_signed_super(const float* x, int n_sub, int lo, int hi, int max_scale) {
  return fit_levels_super(Uniform{lo, hi}, x, n_sub, max_scale);
}

SuperBlockFit fit_iq4_super(const float* x, int n_sub, int max_scale) {
  return fit_levels_super(Iq4Codebook{}, x, n_sub, max_scale);
}

SuperBlockFit fit_affine_super(const float* x, int n_sub, int hi, int max_scale) {
  SuperBlockFit fit;
  const int n_subs = kSuperBlock / n_sub;
  Range ranges[16];
  float largest = 0;
  for (int s = 0; s < n_subs; ++s) {
    ranges[s] = range_with_zero(x + s * n_sub, n_sub);
    largest = std::max(largest, -ranges[s].min);
  }
  fit.dmin = away_from_zero(largest / static_cast<float>(max_scale));
  const float dmin = value_of(fit.dmin);

  // The steps follow from the mins as they are stored.
  SubScales covering[16];
  float steps[16];
  largest = 0;
  for (int s = 0; s < n_subs; ++s) {
    covering[s].min = covering_scale(ranges[s].min, dmin, max_scale);
    steps[s] = (ranges[s].max + dmin * static_cast<float>(covering[s].min)) / static_cast<float>(hi);
    largest = std::max(largest, steps[s]);
  }
  fit.d = away_from_zero(largest / static_cast<float>(max_scale));
  for (int s = 0; s < n_subs; ++s) {
    covering[s].scale = covering_scale(steps[s], value_of(fit.d), max_scale);
    fit_sub_block(Uniform{0, hi}, x + s * n_sub, n_sub, covering[s], s, fit);
  }
  return fit;
}

}  // namespace minfer::gguf
