// The decoders. Compiled once for each instruction set (scripts/cmake/isa_sources.cmake) in a namespace of
// its own, so nothing here may be an inline function of the standard library: the linker would keep one copy
// for all.
//
// They run inside the matrix products of the CPU engine, so each is written as short loops with constant
// bounds over bytes that the vectorizer turns into whole registers: no branch on a value, one place written a
// step. The order of multiplications and additions is the format's (see block_layouts.h); the build forbids
// contracting them to FMA.
#include "gguf/dequantize_isa.h"

#include <string.h>

#include "gguf/block_layouts.h"

namespace minfer::gguf::MINFER_ISA_NAMESPACE {
namespace {

float bits_to_f32(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

uint32_t f32_to_bits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

// As f16_to_f32(), without branches. Rebiasing the exponent by 127 - 15 is right for normal numbers;
// infinities and NaNs need it twice. A subnormal number becomes the mantissa of 2^-14 * 1.m, from which 2^-14
// is taken off again: exact, and no subnormal float is read, so that flush-to-zero modes do not matter.
float f16_bits_to_f32(uint32_t half) {
  const uint32_t magnitude = (half & 0x7fffu) << 13;
  const uint32_t exponent = magnitude & 0x0f800000u;
  const uint32_t normal = magnitude + (112u << 23);
  const uint32_t special = magnitude + (224u << 23);
  const uint32_t subnormal = f32_to_bits(bits_to_f32(magnitude + (113u << 23)) - bits_to_f32(113u << 23));
  uint32_t bits = exponent == 0 ? subnormal : normal;
  bits = exponent == 0x0f800000u ? special : bits;
  return bits_to_f32(bits | (half & 0x8000u) << 16);
}

float f16(F16Bits number) {
  return f16_bits_to_f32(number.bytes[0] | uint32_t{number.bytes[1]} << 8);
}

uint32_t load_u32(const uint8_t* bytes) {
  uint32_t value;
  memcpy(&value, bytes, sizeof value);
  return value;
}

void decode_f32(const void* blocks, float* out, size_t n) {
  memcpy(out, blocks, n * sizeof(float));
}

void decode_f16(const void* blocks, float* __restrict out, size_t n) {
  const auto* __restrict in = static_cast<const uint8_t*>(blocks);
  for (size_t i = 0; i < n; ++i) {
    uint16_t half;
    memcpy(&half, in + 2 * i, sizeof half);
    out[i] = f16_bits_to_f32(half);
  }
}

void decode_bf16(const void* blocks, float* __restrict out, size_t n) {
  const auto* __restrict in = static_cast<const uint8_t*>(blocks);
  for (size_t i = 0; i < n; ++i) {
    uint16_t high;
    memcpy(&high, in + 2 * i, sizeof high);
    out[i] = bits_to_f32(uint32_t{high} << 16);
  }
}

// One block of each type; `decode_blocks` walks them.

void decode(const BlockQ4_0& b, float* __restrict out) {
  const float d = f16(b.d);
  for (int j = 0; j < 16; ++j) out[j] = static_cast<float>((b.qs[j] & 15) - 8) * d;
  for (int j = 0; j < 16; ++j) out[16 + j] = static_cast<float>((b.qs[j] >> 4) - 8) * d;
}

void decode(const BlockQ4_1& b, float* __restrict out) {
  const float d = f16(b.d), m = f16(b.m);
  for (int j = 0; j < 16; ++j) out[j] = static_cast<float>(b.qs[j] & 15) * d + m;
  for (int j = 0; j < 16; ++j) out[16 + j] = static_cast<float>(b.qs[j] >> 4) * d + m;
}

void decode(const BlockQ5_0& b, float* __restrict out) {
  const float d = f16(b.d);
  const uint32_t high = load_u32(b.qh);
  for (int j = 0; j < 16; ++j) {
    const int q = (b.qs[j] & 15) | static_cast<int>((high >> j) << 4 & 16);
    out[j] = static_cast<float>(q - 16) * d;
  }
  for (int j = 0; j < 16; ++j) {
    const int q = b.qs[j] >> 4 | static_cast<int>((high >> (16 + j)) << 4 & 16);
    out[16 + j] = static_cast<float>(q - 16) * d;
  }
}

void decode(const BlockQ5_1& b, float* __restrict out) {
  const float d = f16(b.d), m = f16(b.m);
  const uint32_t high = load_u32(b.qh);
  for (int j = 0; j < 16; ++j) {
    const int q = (b.qs[j] & 15) | static_cast<int>((high >> j) << 4 & 16);
    out[j] = static_cast<float>(q) * d + m;
  }
  for (int j = 0; j < 16; ++j) {
    const int q = b.qs[j] >> 4 | static_cast<int>((high >> (16 + j)) << 4 & 16);
    out[16 + j] = static_cast<float>(q) * d + m;
  }
}

void decode(const BlockQ8_0& b, float* __restrict out) {
  const float d = f16(b.d);
  for (int j = 0; j < 32; ++j) out[j] = static_cast<float>(b.qs[j]) * d;
}

void decode(const BlockQ2_K& b, float* __restrict out) {
  const float d = f16(b.d), dmin = f16(b.dmin);
  for (int s = 0; s < 16; ++s) {
    const float scale = d * static_cast<float>(b.scales[s] & 15);
    const float min = dmin * static_cast<float>(b.scales[s] >> 4);
    const uint8_t* qs = b.qs + s / 8 * 32 + s % 2 * 16;
    const int shift = s / 2 % 4 * 2;
    for (int j = 0; j < 16; ++j) out[16 * s + j] = scale * static_cast<float>(qs[j] >> shift & 3) - min;
  }
}

void decode(const BlockQ3_K& b, float* __restrict out) {
  const float d = f16(b.d);
  for (int s = 0; s < 16; ++s) {
    const int low = s < 8 ? b.scales[s] & 15 : b.scales[s - 8] >> 4;
    const int high = b.scales[8 + s % 4] >> (s / 4 * 2) & 3;
    const float scale = d * static_cast<float>((low | high << 4) - 32);
    const uint8_t* qs = b.qs + s / 8 * 32 + s % 2 * 16;
    const uint8_t* hmask = b.hmask + s % 2 * 16;
    const int shift = s / 2 % 4 * 2;
    const int bit = s / 2;
    for (int j = 0; j < 16; ++j) {
      const int q = (qs[j] >> shift & 3) | (hmask[j] >> bit & 1) << 2;
      out[16 * s + j] = scale * static_cast<float>(q - 4);
    }
  }
}

// The eight scales and eight mins of Q4_K and Q5_K.
void unpack_scales(const uint8_t* packed, float d, float dmin, float* scales, float* mins) {
  for (int s = 0; s < 4; ++s) {
    scales[s] = d * static_cast<float>(packed[s] & 63);
    mins[s] = dmin * static_cast<float>(packed[4 + s] & 63);
    scales[4 + s] = d * static_cast<float>((packed[8 + s] & 15) | packed[s] >> 6 << 4);
    mins[4 + s] = dmin * static_cast<float>(packed[8 + s] >> 4 | packed[4 + s] >> 6 << 4);
  }
}

void decode(const BlockQ4_K& b, float* __restrict out) {
  float scales[8], mins[8];
  unpack_scales(b.scales, f16(b.d), f16(b.dmin), scales, mins);
  for (int k = 0; k < 4; ++k) {
    const uint8_t* qs = b.qs + 32 * k;
    float* low = out + 64 * k;
    for (int j = 0; j < 32; ++j) low[j] = scales[2 * k] * static_cast<float>(qs[j] & 15) - mins[2 * k];
    for (int j = 0; j < 32; ++j)
      low[32 + j] = scales[2 * k + 1] * static_cast<float>(qs[j] >> 4) - mins[2 * k + 1];
  }
}

void decode(const BlockQ5_K& b, float* __restrict out) {
  float scales[8], mins[8];
  unpack_scales(b.scales, f16(b.d), f16(b.dmin), scales, mins);
  for (int k = 0; k < 4; ++k) {
    const uint8_t* qs = b.qs + 32 * k;
    float* low = out + 64 * k;
    for (int j = 0; j < 32; ++j) {
      const int q = (qs[j] & 15) | (b.qh[j] >> (2 * k) & 1) << 4;
      low[j] = scales[2 * k] * static_cast<float>(q) - mins[2 * k];
    }
    for (int j = 0; j < 32; ++j) {
      const int q = qs[j] >> 4 | (b.qh[j] >> (2 * k + 1) & 1) << 4;
      low[32 + j] = scales[2 * k + 1] * static_cast<float>(q) - mins[2 * k + 1];
    }
  }
}

void decode(const BlockQ6_K& b, float* __restrict out) {
  const float d = f16(b.d);
  for (int s = 0; s < 16; ++s) {
    const float scale = d * static_cast<float>(b.scales[s]);
    const int half = s / 8, quarter = s / 2 % 4;
    const uint8_t* ql = b.ql + 64 * half + 32 * (quarter % 2) + s % 2 * 16;
    const uint8_t* qh = b.qh + 32 * half + s % 2 * 16;
    for (int j = 0; j < 16; ++j) {
      const int q = (ql[j] >> (quarter / 2 * 4) & 15) | (qh[j] >> (2 * quarter) & 3) << 4;
      out[16 * s + j] = scale * static_cast<float>(q - 32);
    }
  }
}

void decode(const BlockIQ4_NL& b, float* __restrict out) {
  const float d = f16(b.d);
  for (int j = 0; j < 16; ++j) out[j] = d * static_cast<float>(kIq4Values[b.qs[j] & 15]);
  for (int j = 0; j < 16; ++j) out[16 + j] = d * static_cast<float>(kIq4Values[b.qs[j] >> 4]);
}

void decode(const BlockIQ4_XS& b, float* __restrict out) {
  const float d = f16(b.d);
  const int scales_h = b.scales_h[0] | b.scales_h[1] << 8;
  for (int s = 0; s < 8; ++s) {
    const int low = b.scales_l[s / 2] >> (s % 2 * 4) & 15;
    const int high = scales_h >> (2 * s) & 3;
    const float scale = d * static_cast<float>((low | high << 4) - 32);
    const uint8_t* qs = b.qs + 16 * s;
    float* to = out + 32 * s;
    for (int j = 0; j < 16; ++j) to[j] = scale * static_cast<float>(kIq4Values[qs[j] & 15]);
    for (int j = 0; j < 16; ++j) to[16 + j] = scale * static_cast<float>(kIq4Values[qs[j] >> 4]);
  }
}

template <class Block, int kSize>
void decode_blocks(const void* blocks, float* out, size_t n) {
  const auto* b = static_cast<const Block*>(blocks);
  for (size_t i = 0; i < n / kSize; ++i) decode(b[i], out + kSize * i);
}

}  // namespace

DequantizeFn decoder(TensorType type) {
  switch (type) {
    case TensorType::kF32:
      return decode_f32;
    case TensorType::kF16:
      return decode_f16;
    case TensorType::kBF16:
      return decode_bf16;
    case TensorType::kQ4_0:
      return decode_blocks<BlockQ4_0, kBlock>;
    case TensorType::kQ4_1:
      return decode_blocks<BlockQ4_1, kBlock>;
    case TensorType::kQ5_0:
      return decode_blocks<BlockQ5_0, kBlock>;
    case TensorType::kQ5_1:
      return decode_blocks<BlockQ5_1, kBlock>;
    case TensorType::kQ8_0:
      return decode_blocks<BlockQ8_0, kBlock>;
    case TensorType::kQ2_K:
      return decode_blocks<BlockQ2_K, kSuperBlock>;
    case TensorType::kQ3_K:
      return decode_blocks<BlockQ3_K, kSuperBlock>;
    case TensorType::kQ4_K:
      return decode_blocks<BlockQ4_K, kSuperBlock>;
    case TensorType::kQ5_K:
      return decode_blocks<BlockQ5_K, kSuperBlock>;
    case TensorType::kQ6_K:
      return decode_blocks<BlockQ6_K, kSuperBlock>;
    case TensorType::kIQ4_NL:
      return decode_blocks<BlockIQ4_NL, kBlock>;
    case TensorType::kIQ4_XS:
      return decode_blocks<BlockIQ4_XS, kSuperBlock>;
    default:
      return nullptr;
  }
}

}  // namespace minfer::gguf::MINFER_ISA_NAMESPACE
