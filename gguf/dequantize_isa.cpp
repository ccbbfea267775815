// The decoders. Compiled once for each instruction set (scripts/cmake/isa_sources.cmake) in a namespace of
// its own, so nothing here may be an inline function of the standard library: the linker would keep one copy
// for all.
//
// They run inside the matrix products of the CPU engine. All of them work in steps of sixteen values: bits
// are put together in a vector of sixteen bytes (the vector extension of GCC and Clang, so that it compiles
// for every machine), and store_scaled() widens them to floats. The order of multiplications and additions is
// the format's (gguf/block_layouts.h); the build forbids contracting them to FMA.
#include "gguf/dequantize_isa.h"

#include <string.h>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "gguf/block_layouts.h"

namespace minfer::gguf::MINFER_ISA_NAMESPACE {
namespace {

using U8x16 = uint8_t __attribute__((vector_size(16)));
using I8x16 = int8_t __attribute__((vector_size(16)));

U8x16 load(const uint8_t* bytes) {
  U8x16 v;
  memcpy(&v, bytes, sizeof v);
  return v;
}

// out[j] = q[j] * d, sixteen of them. By hand for AVX2: GCC 12 widens bytes in two steps and to half the
// width. 512-bit registers gain nothing worth a third version (Zen 4: 5 to 15 %).
void store_scaled(float* out, I8x16 q, float d) {
#if defined(__AVX2__)
  const auto bytes = reinterpret_cast<__m128i>(q);
  _mm256_storeu_ps(out, _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)) * d);
  _mm256_storeu_ps(out + 8, _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_unpackhi_epi64(bytes, bytes))) * d);
#else
  for (int j = 0; j < 16; ++j) out[j] = static_cast<float>(q[j]) * d;
#endif
}

// out[j] = q[j] * d + m. With m = 0 not the function above: it would turn -0 into 0.
void store_scaled(float* out, I8x16 q, float d, float m) {
#if defined(__AVX2__)
  const auto bytes = reinterpret_cast<__m128i>(q);
  _mm256_storeu_ps(out, _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)) * d + m);
  _mm256_storeu_ps(out + 8,
                   _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_unpackhi_epi64(bytes, bytes))) * d + m);
#else
  for (int j = 0; j < 16; ++j) out[j] = static_cast<float>(q[j]) * d + m;
#endif
}

void store_scaled(float* out, U8x16 q, float d, float m) {
  store_scaled(out, reinterpret_cast<I8x16>(q), d, m);
}

I8x16 minus(U8x16 q, int8_t offset) {
  return reinterpret_cast<I8x16>(q) - offset;
}

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

uint32_t load_u32(const uint8_t* bytes) {
  uint32_t value;
  memcpy(&value, bytes, sizeof value);
  return value;
}

// As f16_to_f32(), without branches. Rebiasing the exponent by 127 - 15 is right for normal numbers;
// infinities and NaNs need it twice. A subnormal number becomes the mantissa of 2^-14 * 1.m, from which 2^-14
// is taken off again: exact, and no subnormal float is read, which some processors are slow at.
float f16_bits_to_f32(uint32_t half) {
  constexpr uint32_t kOne = 1u << 23;  // in the exponent of a float
  const uint32_t magnitude = (half & 0x7fffu) << 13;
  const uint32_t is_subnormal = magnitude < kOne ? ~0u : 0u;
  const uint32_t is_special = magnitude >= 31 * kOne ? ~0u : 0u;
  const uint32_t rebias = 112 * kOne + (is_subnormal & kOne) + (is_special & 112 * kOne);
  const float excess = bits_to_f32(is_subnormal & 113 * kOne);
  const float number = bits_to_f32(magnitude + rebias) - excess;
  const uint32_t quiet = magnitude > 31 * kOne ? kOne >> 1 : 0;
  return bits_to_f32(f32_to_bits(number) | quiet | (half & 0x8000u) << 16);
}

float f16(F16Bits number) {
  const auto half = static_cast<uint16_t>(number.bytes[0] | number.bytes[1] << 8);
#if defined(__F16C__)
  return _cvtsh_ss(half);
#else
  return f16_bits_to_f32(half);
#endif
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

void decode(const BlockQ4_0& b, float* out) {
  const float d = f16(b.d);
  const U8x16 qs = load(b.qs);
  store_scaled(out, minus(qs & 15, 8), d);
  store_scaled(out + 16, minus(qs >> 4, 8), d);
}

void decode(const BlockQ4_1& b, float* out) {
  const float d = f16(b.d), m = f16(b.m);
  const U8x16 qs = load(b.qs);
  store_scaled(out, qs & 15, d, m);
  store_scaled(out + 16, qs >> 4, d, m);
}

// Sixteen bits to sixteen bytes, 16 for a bit that is set. Each lane keeps its own bit of its byte; adding
// what is missing to 128 moves a bit that is set to the top, whichever it was.
U8x16 fifth_bits(const uint8_t* bits) {
  constexpr U8x16 kFirst = {1, 2, 4, 8, 16, 32, 64, 128},
                  kSecond = {0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 64, 128};
  const U8x16 own = (kFirst & bits[0]) | (kSecond & bits[1]);
  return (own + (128 - (kFirst | kSecond))) >> 3 & 16;
}

void decode(const BlockQ5_0& b, float* out) {
  const float d = f16(b.d);
  const U8x16 qs = load(b.qs);
  store_scaled(out, minus((qs & 15) | fifth_bits(b.qh), 16), d);
  store_scaled(out + 16, minus(qs >> 4 | fifth_bits(b.qh + 2), 16), d);
}

void decode(const BlockQ5_1& b, float* out) {
  const float d = f16(b.d), m = f16(b.m);
  const U8x16 qs = load(b.qs);
  store_scaled(out, (qs & 15) | fifth_bits(b.qh), d, m);
  store_scaled(out + 16, qs >> 4 | fifth_bits(b.qh + 2), d, m);
}

void decode(const BlockQ8_0& b, float* out) {
  const float d = f16(b.d);
  const auto* qs = reinterpret_cast<const uint8_t*>(b.qs);
  store_scaled(out, minus(load(qs), 0), d);
  store_scaled(out + 16, minus(load(qs + 16), 0), d);
}

// In the K types `half` counts halves of 128 values and `part` the two runs of 16 in each 32, so that s, the
// sub-block of 16, is 8 * half + part and two more for every 32 values on.

void decode(const BlockQ2_K& b, float* out) {
  const U8x16 packed = load(b.scales);
  float scales[16], mins[16];
  store_scaled(scales, minus(packed & 15, 0), f16(b.d));
  store_scaled(mins, minus(packed >> 4, 0), -f16(b.dmin));
  for (int half = 0; half < 2; ++half) {
    for (int part = 0; part < 2; ++part) {
      const U8x16 qs = load(b.qs + 32 * half + 16 * part);
      const int s = 8 * half + part;
      float* to = out + 16 * s;
      store_scaled(to, qs & 3, scales[s], mins[s]);
      store_scaled(to + 32, qs >> 2 & 3, scales[s + 2], mins[s + 2]);
      store_scaled(to + 64, qs >> 4 & 3, scales[s + 4], mins[s + 4]);
      store_scaled(to + 96, qs >> 6, scales[s + 6], mins[s + 6]);
    }
  }
}

// d times the sixteen scales; four of them at a time, a byte each of a 32-bit number.
void unpack_scales(const BlockQ3_K& b, float* scales) {
  const uint32_t low[2] = {load_u32(b.scales), load_u32(b.scales + 4)};
  const uint32_t high = load_u32(b.scales + 8);
  constexpr uint32_t kLow = 0x0f0f0f0f, kHigh = 0x30303030;
  const uint32_t bytes[4] = {(low[0] & kLow) | (high << 4 & kHigh), (low[1] & kLow) | (high << 2 & kHigh),
                             (low[0] >> 4 & kLow) | (high & kHigh),
                             (low[1] >> 4 & kLow) | (high >> 2 & kHigh)};
  store_scaled(scales, minus(load(reinterpret_cast<const uint8_t*>(bytes)), 32), f16(b.d));
}

void decode(const BlockQ3_K& b, float* out) {
  float scales[16];
  unpack_scales(b, scales);
  for (int part = 0; part < 2; ++part) {
    U8x16 missing = ~load(b.hmask + 16 * part);  // a high bit that is not set takes 4 off
    for (int half = 0; half < 2; ++half) {
      const U8x16 qs = load(b.qs + 32 * half + 16 * part);
      const int s = 8 * half + part;
      float* to = out + 16 * s;
      store_scaled(to, reinterpret_cast<I8x16>((qs & 3) - (missing << 2 & 4)), scales[s]);
      store_scaled(to + 32, reinterpret_cast<I8x16>((qs >> 2 & 3) - (missing << 1 & 4)), scales[s + 2]);
      store_scaled(to + 64, reinterpret_cast<I8x16>((qs >> 4 & 3) - (missing & 4)), scales[s + 4]);
      store_scaled(to + 96, reinterpret_cast<I8x16>((qs >> 6) - (missing >> 1 & 4)), scales[s + 6]);
      missing >>= 4;
    }
  }
}

// d times the eight scales and -dmin times the eight mins of Q4_K and Q5_K, packed as Q3_K's.
void unpack_scales(const uint8_t* packed, float d, float dmin, float* scales, float* minus_mins) {
  const uint32_t scale = load_u32(packed), min = load_u32(packed + 4), low = load_u32(packed + 8);
  constexpr uint32_t kLow = 0x0f0f0f0f, kHigh = 0x30303030, kAll = 0x3f3f3f3f;
  const uint32_t bytes[4] = {scale & kAll, (low & kLow) | (scale >> 2 & kHigh), min & kAll,
                             (low >> 4 & kLow) | (min >> 2 & kHigh)};
  const auto* q = reinterpret_cast<const uint8_t*>(bytes);
  for (int s = 0; s < 8; ++s) scales[s] = d * static_cast<float>(q[s]);
  for (int s = 0; s < 8; ++s) minus_mins[s] = -dmin * static_cast<float>(q[8 + s]);
}

void decode(const BlockQ4_K& b, float* out) {
  float scales[8], mins[8];
  unpack_scales(b.scales, f16(b.d), f16(b.dmin), scales, mins);
  for (int k = 0; k < 4; ++k) {
    for (int part = 0; part < 2; ++part) {
      const U8x16 qs = load(b.qs + 32 * k + 16 * part);
      float* to = out + 64 * k + 16 * part;
      store_scaled(to, qs & 15, scales[2 * k], mins[2 * k]);
      store_scaled(to + 32, qs >> 4, scales[2 * k + 1], mins[2 * k + 1]);
    }
  }
}

void decode(const BlockQ5_K& b, float* out) {
  float scales[8], mins[8];
  unpack_scales(b.scales, f16(b.d), f16(b.dmin), scales, mins);
  for (int part = 0; part < 2; ++part) {
    U8x16 high = load(b.qh + 16 * part);
    for (int k = 0; k < 4; ++k) {
      const U8x16 qs = load(b.qs + 32 * k + 16 * part);
      float* to = out + 64 * k + 16 * part;
      store_scaled(to, (qs & 15) | (high << 4 & 16), scales[2 * k], mins[2 * k]);
      store_scaled(to + 32, qs >> 4 | (high << 3 & 16), scales[2 * k + 1], mins[2 * k + 1]);
      high >>= 2;
    }
  }
}

void decode(const BlockQ6_K& b, float* out) {
  float scales[16];
  store_scaled(scales, minus(load(reinterpret_cast<const uint8_t*>(b.scales)), 0), f16(b.d));
  for (int half = 0; half < 2; ++half) {
    for (int part = 0; part < 2; ++part) {
      const uint8_t* ql = b.ql + 64 * half + 16 * part;
      const U8x16 low = load(ql), low_next = load(ql + 32);
      const U8x16 high = load(b.qh + 32 * half + 16 * part);
      const int s = 8 * half + part;
      float* to = out + 16 * s;
      store_scaled(to, minus((low & 15) | (high << 4 & 48), 32), scales[s]);
      store_scaled(to + 32, minus((low_next & 15) | (high << 2 & 48), 32), scales[s + 2]);
      store_scaled(to + 64, minus(low >> 4 | (high & 48), 32), scales[s + 4]);
      store_scaled(to + 96, minus(low_next >> 4 | (high >> 2 & 48), 32), scales[s + 6]);
    }
  }
}

// kIq4Values[q] in every lane: one instruction where the processor has a byte shuffle.
I8x16 iq4_values(U8x16 q) {
  I8x16 values;
#if defined(__AVX2__)
  memcpy(&values, kIq4Values, sizeof values);
  return reinterpret_cast<I8x16>(
      _mm_shuffle_epi8(reinterpret_cast<__m128i>(values), reinterpret_cast<__m128i>(q)));
#else
  for (int j = 0; j < 16; ++j) values[j] = kIq4Values[q[j]];
  return values;
#endif
}

void decode(const BlockIQ4_NL& b, float* out) {
  const float d = f16(b.d);
  const U8x16 qs = load(b.qs);
  store_scaled(out, iq4_values(qs & 15), d);
  store_scaled(out + 16, iq4_values(qs >> 4), d);
}

void decode(const BlockIQ4_XS& b, float* out) {
  const float d = f16(b.d);
  const int scales_h = b.scales_h[0] | b.scales_h[1] << 8;
  for (int s = 0; s < 8; ++s) {
    const int low = b.scales_l[s / 2] >> (s % 2 * 4) & 15;
    const int high = scales_h >> (2 * s) & 3;
    const float scale = d * static_cast<float>((low | high << 4) - 32);
    const U8x16 qs = load(b.qs + 16 * s);
    store_scaled(out + 32 * s, iq4_values(qs & 15), scale);
    store_scaled(out + 32 * s + 16, iq4_values(qs >> 4), scale);
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
