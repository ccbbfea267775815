#include "gguf/quantize.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <string>

#include "gguf/block_layouts.h"
#include "gguf/error.h"
#include "gguf/quantize_fit.h"

namespace minfer::gguf {
namespace {

void pack_nibbles(const int* codes, uint8_t* qs) {
  for (int j = 0; j < 16; ++j) qs[j] = static_cast<uint8_t>((codes[j] & 15) | (codes[16 + j] & 15) << 4);
}

void pack_fifth_bits(const int* codes, uint8_t* qh) {
  for (int j = 0; j < kBlock; ++j) qh[j / 8] |= static_cast<uint8_t>((codes[j] >> 4 & 1) << (j % 8));
}

void encode(const float* x, BlockQ4_0& b) {
  BlockFit fit = fit_signed(x, -8, 7);
  for (int& code : fit.codes) code += 8;
  b.d = fit.d;
  pack_nibbles(fit.codes, b.qs);
}

void encode(const float* x, BlockQ4_1& b) {
  const BlockFit fit = fit_affine(x, 15);
  b.d = fit.d;
  b.m = fit.m;
  pack_nibbles(fit.codes, b.qs);
}

void encode(const float* x, BlockQ5_0& b) {
  BlockFit fit = fit_signed(x, -16, 15);
  for (int& code : fit.codes) code += 16;
  b.d = fit.d;
  pack_nibbles(fit.codes, b.qs);
  pack_fifth_bits(fit.codes, b.qh);
}

void encode(const float* x, BlockQ5_1& b) {
  const BlockFit fit = fit_affine(x, 31);
  b.d = fit.d;
  b.m = fit.m;
  pack_nibbles(fit.codes, b.qs);
  pack_fifth_bits(fit.codes, b.qh);
}

void encode(const float* x, BlockQ8_0& b) {
  const BlockFit fit = fit_signed(x, -127, 127);  // -128 has no negative, which 8-bit dot products may need
  b.d = fit.d;
  for (int j = 0; j < kBlock; ++j) b.qs[j] = static_cast<int8_t>(fit.codes[j]);
}

void encode(const float* x, BlockIQ4_NL& b) {
  const BlockFit fit = fit_iq4(x);
  b.d = fit.d;
  pack_nibbles(fit.codes, b.qs);
}

// Two bits of each code, from bit `shift` on: four of them, 32 values apart, in a byte (BlockQ2_K draws it).
void pack_pairs(const int* codes, int shift, uint8_t* qs) {
  for (int i = 0; i < kSuperBlock; ++i) {
    qs[i / 128 * 32 + i % 32] |= static_cast<uint8_t>((codes[i] >> shift & 3) << (i / 32 % 4 * 2));
  }
}

void encode(const float* x, BlockQ2_K& b) {
  const SuperBlockFit fit = fit_affine_super(x, 16, 3, 15);
  b.d = fit.d;
  b.dmin = fit.dmin;
  for (int s = 0; s < 16; ++s) b.scales[s] = static_cast<uint8_t>(fit.scales[s] | fit.mins[s] << 4);
  pack_pairs(fit.codes, 0, b.qs);
}

void encode(const float* x, BlockQ3_K& b) {
  SuperBlockFit fit = fit_signed_super(x, 16, -4, 3, 31);
  b.d = fit.d;
  for (int& code : fit.codes) code += 4;
  pack_pairs(fit.codes, 0, b.qs);
  for (int i = 0; i < kSuperBlock; ++i) {
    b.hmask[i % 32] |= static_cast<uint8_t>((fit.codes[i] >> 2) << (i / 32));
  }
  for (int s = 0; s < 16; ++s) {
    const int scale = fit.scales[s] + 32;
    b.scales[s % 8] |= static_cast<uint8_t>((scale & 15) << (s / 8 * 4));
    b.scales[8 + s % 4] |= static_cast<uint8_t>((scale >> 4) << (s / 4 * 2));
  }
}

void pack_scales(const SuperBlockFit& fit, uint8_t* scales) {
  for (int s = 0; s < 4; ++s) {
    scales[s] = static_cast<uint8_t>(fit.scales[s] | (fit.scales[4 + s] >> 4) << 6);
    scales[4 + s] = static_cast<uint8_t>(fit.mins[s] | (fit.mins[4 + s] >> 4) << 6);
    scales[8 + s] = static_cast<uint8_t>((fit.scales[4 + s] & 15) | (fit.mins[4 + s] & 15) << 4);
  }
}

// The low four bits of values 64k + j and 64k + 32 + j in byte 32k + j.
void pack_nibbles_by_32(const int* codes, uint8_t* qs) {
  for (int i = 0; i < kSuperBlock; ++i) {
    qs[i / 64 * 32 + i % 32] |= static_cast<uint8_t>((codes[i] & 15) << (i / 32 % 2 * 4));
  }
}

void encode(const float* x, BlockQ4_K& b) {
  const SuperBlockFit fit = fit_affine_super(x, 32, 15, 63);
  b.d = fit.d;
  b.dmin = fit.dmin;
  pack_scales(fit, b.scales);
  pack_nibbles_by_32(fit.codes, b.qs);
}

void encode(const float* x, BlockQ5_K& b) {
  const SuperBlockFit fit = fit_affine_super(x, 32, 31, 63);
  b.d = fit.d;
  b.dmin = fit.dmin;
  pack_scales(fit, b.scales);
  pack_nibbles_by_32(fit.codes, b.qs);
  for (int i = 0; i < kSuperBlock; ++i) {
    b.qh[i % 32] |= static_cast<uint8_t>((fit.codes[i] >> 4) << (i / 32));
  }
}

void encode(const float* x, BlockQ6_K& b) {
  SuperBlockFit fit = fit_signed_super(x, 16, -32, 31, 127);
  b.d = fit.d;
  for (int s = 0; s < 16; ++s) b.scales[s] = static_cast<int8_t>(fit.scales[s]);
  for (int& code : fit.codes) code += 32;
  pack_pairs(fit.codes, 4, b.qh);
  for (int i = 0; i < kSuperBlock; ++i) {
    b.ql[i / 128 * 64 + i % 64] |= static_cast<uint8_t>((fit.codes[i] & 15) << (i / 64 % 2 * 4));
  }
}

void encode(const float* x, BlockIQ4_XS& b) {
  const SuperBlockFit fit = fit_iq4_super(x, 32, 31);
  b.d = fit.d;
  for (int s = 0; s < 8; ++s) {
    const int scale = fit.scales[s] + 32;
    b.scales_l[s / 2] |= static_cast<uint8_t>((scale & 15) << (s % 2 * 4));
    b.scales_h[s / 4] |= static_cast<uint8_t>((scale >> 4) << (s % 4 * 2));
    pack_nibbles(fit.codes + 32 * s, b.qs + 16 * s);
  }
}

void encode(const float* x, float& b) {
  b = *x;
}

void encode(const float* x, F16Bits& b) {
  b = nearest_f16(*x);
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
