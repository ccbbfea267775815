#include "gguf/dequantize.h"

#include <bit>

#include "gguf/dequantize_isa.h"

namespace minfer::gguf {

DequantizeFn dequantizer(TensorType type) {
  return dequantizer(type, isa());
}

DequantizeFn dequantizer(TensorType type, Isa level) {
  switch (level) {
#if defined(__x86_64__)
    case Isa::kAvx512:
      return avx512::decoder(type);
    case Isa::kAvx2:
      return avx2::decoder(type);
#endif
    default:
      return base::decoder(type);
  }
}

float f16_to_f32(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1fu;
  const uint32_t mantissa = bits & 0x3ffu;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
  }
  const uint32_t wide_exponent = exponent == 0x1f ? 0xffu : exponent + (127 - 15);
  const uint32_t quiet = exponent == 0x1f && mantissa != 0 ? 1u << 22 : 0;
  return std::bit_cast<float>(sign | wide_exponent << 23 | mantissa << 13 | quiet);
}

uint16_t f32_to_f16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) {  // a NaN keeps the top of its payload and becomes quiet, as VCVTPS2PH does
    return static_cast<uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
  }
  if (magnitude >= 0x477ff000u)
    return sign | 0x7c00u;  // 65520, halfway between the largest f16 and 2^16, and above
  uint32_t rounded;
  if (magnitude < 0x38800000u) {
    // Below 2^-14 an f16 counts steps of 2^-24, and so does the end of a float in [0.5, 1): the sum rounds to
    // it.
    const float sum = std::bit_cast<float>(magnitude) + 0.5f;
    rounded = std::bit_cast<uint32_t>(sum) - std::bit_cast<uint32_t>(0.5f);
  } else {
    // Half a step minus one, plus the bit that decides ties; the carry may raise the exponent, as it should.
    const uint32_t tie = (magnitude >> 13) & 1u;
    rounded = (magnitude + 0xfffu + tie - (uint32_t{127 - 15} << 23)) >> 13;
  }
  return static_cast<uint16_t>(sign | rounded);
}

}  // namespace minfer::gguf
