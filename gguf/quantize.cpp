#include "gguf/quantize.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <string>

#include "gguf/block_layouts.h"
#include "gguf/dequantize.h"
#include "gguf/error.h"

// Every scale is first rounded to its stored form, in the direction that leaves no value outside the range,
// and the values are then rounded under the stored scale: so an error is at most half a stored step. The
// types with integer sub-block scales also try the next smaller ones, which clip a little and are finer, and
// keep the least square error.

namespace minfer::gguf {
namespace {

F16Bits pack(uint16_t bits) {
  return {{static_cast<uint8_t>(bits & 0xff), static_cast<uint8_t>(bits >> 8)}};
}

float value_of(F16Bits number) {
  return f16_to_f32(static_cast<uint16_t>(number.bytes[0] | number.bytes[1] << 8));
}

F16Bits finite(uint16_t bits, float value) {
  if ((bits & 0x7c00u) == 0x7c00u) throw Error(std::to_string(value) + " is beyond 65504, the largest f16");
  return pack(bits);
}

// The f16 next to `value` on the side away from zero, or the value itself.
F16Bits away_from_zero(float value) {
  uint16_t bits = f32_to_f16(value);
  if (std::fabs(f16_to_f32(bits)) < std::fabs(value)) ++bits;
  return finite(bits, value);
}

// The largest f16 that is not above `value`.
F16Bits downwards(float value) {
  uint16_t bits = f32_to_f16(value);
  if (f16_to_f32(bits) > value) bits = value < 0 ? static_cast<uint16_t>((bits | 0x8000u) + 1) : bits - 1;
  return finite(bits, value);
}

struct Range {
  float min = 0, max = 0;  // zero is always inside: each type has it as a level
};

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
  static int code(float ratio) {
    int best = 0;
    for (int i = 1; i < 16; ++i) {
      if (std::fabs(ratio - static_cast<float>(kIq4Values[i])) <
          std::fabs(ratio - static_cast<float>(kIq4Values[best]))) {
        best = i;
      }
    }
    return best;
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

// Blocks with one scale: x = level * d.

template <class Levels>
F16Bits encode_signed(const Levels& levels, const float* x, int* codes) {
  const F16Bits bits = away_from_zero(signed_step(x, kBlock, levels.lo, levels.hi));
  const float d = value_of(bits);
  for (int j = 0; j < kBlock; ++j) codes[j] = levels.code(ratio(x[j], d));
  return bits;
}

// Blocks with a scale and an offset: x = code * d + m, codes 0 ... hi.
template <class Block>
void encode_affine(const float* x, int hi, Block& b, int* codes) {
  const auto [min, max] = std::minmax_element(x, x + kBlock);
  b.m = downwards(*min);
  const float m = value_of(b.m);
  b.d = away_from_zero((*max - m) / static_cast<float>(hi));
  const float d = value_of(b.d);
  for (int j = 0; j < kBlock; ++j) codes[j] = Uniform{0, hi}.code(ratio(x[j] - m, d));
}

void pack_nibbles(const int* codes, uint8_t* qs) {
  for (int j = 0; j < 16; ++j) qs[j] = static_cast<uint8_t>((codes[j] & 15) | (codes[16 + j] & 15) << 4);
}

void pack_fifth_bits(const int* codes, uint8_t* qh) {
  for (int j = 0; j < kBlock; ++j) qh[j / 8] |= static_cast<uint8_t>((codes[j] >> 4 & 1) << (j % 8));
}

void encode(const float* x, BlockQ4_0& b) {
  int codes[kBlock];
  b.d = encode_signed(Uniform{-8, 7}, x, codes);
  for (int& code : codes) code += 8;
  pack_nibbles(codes, b.qs);
}

void encode(const float* x, BlockQ4_1& b) {
  int codes[kBlock];
  encode_affine(x, 15, b, codes);
  pack_nibbles(codes, b.qs);
}

void encode(const float* x, BlockQ5_0& b) {
  int codes[kBlock];
  b.d = encode_signed(Uniform{-16, 15}, x, codes);
  for (int& code : codes) code += 16;
  pack_nibbles(codes, b.qs);
  pack_fifth_bits(codes, b.qh);
}

void encode(const float* x, BlockQ5_1& b) {
  int codes[kBlock];
  encode_affine(x, 31, b, codes);
  pack_nibbles(codes, b.qs);
  pack_fifth_bits(codes, b.qh);
}

void encode(const float* x, BlockQ8_0& b) {
  int codes[kBlock];
  b.d = encode_signed(Uniform{-127, 127}, x,
                      codes);  // without -128, which has no negative for 8-bit dot products
  for (int j = 0; j < kBlock; ++j) b.qs[j] = static_cast<int8_t>(codes[j]);
}

void encode(const float* x, BlockIQ4_NL& b) {
  int codes[kBlock];
  b.d = encode_signed(Iq4Codebook{}, x, codes);
  pack_nibbles(codes, b.qs);
}

// Super-blocks: 256 values, sub-blocks of n_sub values with integer scales.

struct SuperBlock {
  F16Bits d{}, dmin{};
  int scales[16] = {}, mins[16] = {};
  int codes[kSuperBlock] = {};
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

// The smallest integer scale whose step is not below `step`.
int covering_scale(float step, float d, int max_scale) {
  return std::min(static_cast<int>(std::ceil(ratio(std::fabs(step), d))), max_scale);
}

constexpr int kFinerScales = 3;  // scales tried at and below the covering one

// x = (d * scale) * level, scales -max_scale ... max_scale.
template <class Levels>
SuperBlock encode_signed_super(const Levels& levels, const float* x, int n_sub, int max_scale) {
  SuperBlock b;
  float steps[16], largest = 0;
  for (int s = 0; s < kSuperBlock / n_sub; ++s) {
    steps[s] = signed_step(x + s * n_sub, n_sub, levels.lo, levels.hi);
    largest = std::max(largest, std::fabs(steps[s]));
  }
  b.d = away_from_zero(largest / static_cast<float>(max_scale));
  const float d = value_of(b.d);
  for (int s = 0; s < kSuperBlock / n_sub; ++s) {
    const float* sub = x + s * n_sub;
    const int covering = covering_scale(steps[s], d, max_scale);
    float least = INFINITY;
    for (int magnitude = covering; magnitude >= std::max(covering - kFinerScales + 1, 0); --magnitude) {
      const int scale = steps[s] < 0 ? -magnitude : magnitude;
      const float error = square_error(levels, sub, n_sub, d * static_cast<float>(scale), 0);
      if (error < least) {
        least = error;
        b.scales[s] = scale;
      }
    }
    const float step = d * static_cast<float>(b.scales[s]);
    for (int i = 0; i < n_sub; ++i) b.codes[s * n_sub + i] = levels.code(ratio(sub[i], step));
  }
  return b;
}

// x = (d * scale) * code - dmin * min, codes 0 ... hi, scales and mins 0 ... max_scale.
SuperBlock encode_affine_super(const float* x, int n_sub, int hi, int max_scale) {
  SuperBlock b;
  const Uniform levels{0, hi};
  const int n_subs = kSuperBlock / n_sub;
  Range ranges[16];
  float largest = 0;
  for (int s = 0; s < n_subs; ++s) {
    ranges[s] = range_with_zero(x + s * n_sub, n_sub);
    largest = std::max(largest, -ranges[s].min);
  }
  b.dmin = away_from_zero(largest / static_cast<float>(max_scale));
  const float dmin = value_of(b.dmin);

  float steps[16];
  largest = 0;
  for (int s = 0; s < n_subs; ++s) {
    const auto min = static_cast<float>(covering_scale(ranges[s].min, dmin, max_scale));
    steps[s] = (ranges[s].max + dmin * min) / static_cast<float>(hi);
    largest = std::max(largest, steps[s]);
  }
  b.d = away_from_zero(largest / static_cast<float>(max_scale));
  const float d = value_of(b.d);

  for (int s = 0; s < n_subs; ++s) {
    const float* sub = x + s * n_sub;
    const int covering = covering_scale(steps[s], d, max_scale);
    const int covering_min = covering_scale(ranges[s].min, dmin, max_scale);
    float least = INFINITY;
    for (int min = covering_min; min >= std::max(covering_min - 1, 0); --min) {
      for (int scale = covering; scale >= std::max(covering - kFinerScales + 1, 0); --scale) {
        const float error =
            square_error(levels, sub, n_sub, d * static_cast<float>(scale), dmin * static_cast<float>(min));
        if (error < least) {
          least = error;
          b.scales[s] = scale;
          b.mins[s] = min;
        }
      }
    }
    const float step = d * static_cast<float>(b.scales[s]), min = dmin * static_cast<float>(b.mins[s]);
    for (int i = 0; i < n_sub; ++i) b.codes[s * n_sub + i] = levels.code(ratio(sub[i] + min, step));
  }
  return b;
}

// Two bits of each code, from bit `shift` on: four of them, 32 values apart, in a byte (BlockQ2_K draws it).
void pack_pairs(const int* codes, int shift, uint8_t* qs) {
  for (int i = 0; i < kSuperBlock; ++i) {
    qs[i / 128 * 32 + i % 32] |= static_cast<uint8_t>((codes[i] >> shift & 3) << (i / 32 % 4 * 2));
  }
}

void encode(const float* x, BlockQ2_K& b) {
  const SuperBlock super = encode_affine_super(x, 16, 3, 15);
  b.d = super.d;
  b.dmin = super.dmin;
  for (int s = 0; s < 16; ++s) b.scales[s] = static_cast<uint8_t>(super.scales[s] | super.mins[s] << 4);
  pack_pairs(super.codes, 0, b.qs);
}

void encode(const float* x, BlockQ3_K& b) {
  SuperBlock super = encode_signed_super(Uniform{-4, 3}, x, 16, 31);
  b.d = super.d;
  for (int& code : super.codes) code += 4;
  pack_pairs(super.codes, 0, b.qs);
  for (int i = 0; i < kSuperBlock; ++i) {
    b.hmask[i % 32] |= static_cast<uint8_t>((super.codes[i] >> 2) << (i / 32));
  }
  for (int s = 0; s < 16; ++s) {
    const int scale = super.scales[s] + 32;
    b.scales[s % 8] |= static_cast<uint8_t>((scale & 15) << (s / 8 * 4));
    b.scales[8 + s % 4] |= static_cast<uint8_t>((scale >> 4) << (s / 4 * 2));
  }
}

void pack_scales(const SuperBlock& super, uint8_t* scales) {
  for (int s = 0; s < 4; ++s) {
    scales[s] = static_cast<uint8_t>(super.scales[s] | (super.scales[4 + s] >> 4) << 6);
    scales[4 + s] = static_cast<uint8_t>(super.mins[s] | (super.mins[4 + s] >> 4) << 6);
    scales[8 + s] = static_cast<uint8_t>((super.scales[4 + s] & 15) | (super.mins[4 + s] & 15) << 4);
  }
}

// The low four bits of values 64k + j and 64k + 32 + j in byte 32k + j.
void pack_nibbles_by_32(const int* codes, uint8_t* qs) {
  for (int i = 0; i < kSuperBlock; ++i) {
    qs[i / 64 * 32 + i % 32] |= static_cast<uint8_t>((codes[i] & 15) << (i / 32 % 2 * 4));
  }
}

void encode(const float* x, BlockQ4_K& b) {
  const SuperBlock super = encode_affine_super(x, 32, 15, 63);
  b.d = super.d;
  b.dmin = super.dmin;
  pack_scales(super, b.scales);
  pack_nibbles_by_32(super.codes, b.qs);
}

void encode(const float* x, BlockQ5_K& b) {
  const SuperBlock super = encode_affine_super(x, 32, 31, 63);
  b.d = super.d;
  b.dmin = super.dmin;
  pack_scales(super, b.scales);
  pack_nibbles_by_32(super.codes, b.qs);
  for (int i = 0; i < kSuperBlock; ++i) {
    b.qh[i % 32] |= static_cast<uint8_t>((super.codes[i] >> 4) << (i / 32));
  }
}

void encode(const float* x, BlockQ6_K& b) {
  SuperBlock super = encode_signed_super(Uniform{-32, 31}, x, 16, 127);
  b.d = super.d;
  for (int s = 0; s < 16; ++s) b.scales[s] = static_cast<int8_t>(super.scales[s]);
  for (int& code : super.codes) code += 32;
  pack_pairs(super.codes, 4, b.qh);
  for (int i = 0; i < kSuperBlock; ++i) {
    b.ql[i / 128 * 64 + i % 64] |= static_cast<uint8_t>((super.codes[i] & 15) << (i / 64 % 2 * 4));
  }
}

void encode(const float* x, BlockIQ4_XS& b) {
  const SuperBlock super = encode_signed_super(Iq4Codebook{}, x, 32, 31);
  b.d = super.d;
  for (int s = 0; s < 8; ++s) {
    const int scale = super.scales[s] + 32;
    b.scales_l[s / 2] |= static_cast<uint8_t>((scale & 15) << (s % 2 * 4));
    b.scales_h[s / 4] |= static_cast<uint8_t>((scale >> 4) << (s % 4 * 2));
    pack_nibbles(super.codes + 32 * s, b.qs + 16 * s);
  }
}

void encode(const float* x, float& b) {
  b = *x;
}

void encode(const float* x, F16Bits& b) {
  b = finite(f32_to_f16(*x), *x);
}

struct BF16Bits {
  uint8_t bytes[2];
};

void encode(const float* x, BF16Bits& b) {
  const uint32_t bits = std::bit_cast<uint32_t>(*x);
  const uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;  // to nearest even
  if ((rounded & 0x7f80u) == 0x7f80u) throw Error(std::to_string(*x) + " rounds to infinity in bf16");
  b = {{static_cast<uint8_t>(rounded & 0xff), static_cast<uint8_t>(rounded >> 8)}};
}

template <class Block>
void encode_to_bytes(const float* x, std::byte* bytes) {
  Block block{};
  encode(x, block);
  std::memcpy(bytes, &block, sizeof block);
}

using EncodeFn = void (*)(const float* x, std::byte* bytes);  // one block

EncodeFn encoder(TensorType type) {
  switch (type) {
    case TensorType::kF32:
      return encode_to_bytes<float>;
    case TensorType::kF16:
      return encode_to_bytes<F16Bits>;
    case TensorType::kBF16:
      return encode_to_bytes<BF16Bits>;
    case TensorType::kQ4_0:
      return encode_to_bytes<BlockQ4_0>;
    case TensorType::kQ4_1:
      return encode_to_bytes<BlockQ4_1>;
    case TensorType::kQ5_0:
      return encode_to_bytes<BlockQ5_0>;
    case TensorType::kQ5_1:
      return encode_to_bytes<BlockQ5_1>;
    case TensorType::kQ8_0:
      return encode_to_bytes<BlockQ8_0>;
    case TensorType::kQ2_K:
      return encode_to_bytes<BlockQ2_K>;
    case TensorType::kQ3_K:
      return encode_to_bytes<BlockQ3_K>;
    case TensorType::kQ4_K:
      return encode_to_bytes<BlockQ4_K>;
    case TensorType::kQ5_K:
      return encode_to_bytes<BlockQ5_K>;
    case TensorType::kQ6_K:
      return encode_to_bytes<BlockQ6_K>;
    case TensorType::kIQ4_NL:
      return encode_to_bytes<BlockIQ4_NL>;
    case TensorType::kIQ4_XS:
      return encode_to_bytes<BlockIQ4_XS>;
    default:
      return nullptr;
  }
}

}  // namespace

std::vector<std::byte> quantize(TensorType type, const float* values, size_t n) {
  const TypeInfo* info = type_info(type);
  const EncodeFn encode_block = encoder(type);
  const std::string name = info ? info->name : "type " + std::to_string(static_cast<uint32_t>(type));
  if (!info || !encode_block) throw Error("quantize: " + name + " is not supported");
  if (n % info->block_size != 0) {
    throw Error("quantize: " + std::to_string(n) + " values are no whole blocks of " + name + ", " +
                std::to_string(info->block_size) + " each");
  }
  for (size_t i = 0; i < n; ++i) {
    if (!std::isfinite(values[i]))
      throw Error("quantize: " + name + ": value " + std::to_string(i) + " is not finite");
  }
  std::vector<std::byte> bytes(n / info->block_size * info->block_bytes);
  for (size_t block = 0; block < n / info->block_size; ++block) {
    try {
      encode_block(values + block * info->block_size, bytes.data() + block * info->block_bytes);
    } catch (const Error& error) {
      throw Error("quantize: " + name + ": block " + std::to_string(block) + ": " + error.what());
    }
  }
  return bytes;
}

}  // namespace minfer::gguf
