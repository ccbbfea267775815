// Random matrices of every block type, for the tests of what reads packed weights: random bits under scales
// that a test chooses.
#pragma once

#include <cstddef>
#include <cstring>
#include <random>
#include <vector>

#include "cuda/kernels/packed_matrix.h"
#include "gguf/block_layouts.h"
#include "tests/cuda/gpu.h"

namespace minfer::test {

using gguf::TensorType;

inline constexpr TensorType kBlockTypes[] = {
    TensorType::kF32,  TensorType::kF16,  TensorType::kBF16, TensorType::kQ4_0,   TensorType::kQ4_1,
    TensorType::kQ5_0, TensorType::kQ5_1, TensorType::kQ8_0, TensorType::kQ2_K,   TensorType::kQ3_K,
    TensorType::kQ4_K, TensorType::kQ5_K, TensorType::kQ6_K, TensorType::kIQ4_NL, TensorType::kIQ4_XS};

// Where the f16 scales of a block stand; -1: none.
struct ScaleOffsets {
  int d = -1, m = -1;
};
inline ScaleOffsets scale_offsets(TensorType type) {
  switch (type) {
    case TensorType::kQ4_1:
    case TensorType::kQ5_1:
    case TensorType::kQ4_K:
    case TensorType::kQ5_K:
      return {0, 2};
    case TensorType::kQ2_K:
      return {offsetof(gguf::BlockQ2_K, d), offsetof(gguf::BlockQ2_K, dmin)};
    case TensorType::kQ3_K:
      return {offsetof(gguf::BlockQ3_K, d), -1};
    case TensorType::kQ6_K:
      return {offsetof(gguf::BlockQ6_K, d), -1};
    case TensorType::kF32:
    case TensorType::kF16:
    case TensorType::kBF16:
      return {};
    default:
      return {0, -1};
  }
}

// Scales: f16 numbers that weights of real models have (`special` false: 0.5 to 1 of a power of two that
// makes weights about 0.05, either sign), or also 0, subnormals and the largest ones.
inline std::vector<std::byte> random_blocks(TensorType type, size_t n_values, uint32_t seed,
                                            bool special = false) {
  const gguf::TypeInfo& info = *gguf::type_info(type);
  std::mt19937_64 rng(seed);
  std::vector<std::byte> bytes(n_values / info.block_size * info.block_bytes);
  if (info.block_size == 1) {
    for (size_t i = 0; i < n_values; ++i) {
      float v = static_cast<float>(static_cast<int64_t>(rng() >> 40) - (1 << 23)) * 0x1p-27f;  // within 1/16
      if (special && i % 7 == 0) v *= i % 2 == 0 ? 0x1p-17f : 0x1p19f;
      const uint16_t f16 = gguf::f32_to_f16(v);
      uint32_t bits;
      std::memcpy(&bits, &v, 4);
      const auto bf16 = static_cast<uint16_t>(bits >> 16);
      const void* from = type == TensorType::kF32   ? static_cast<const void*>(&v)
                         : type == TensorType::kF16 ? &f16
                                                    : &bf16;
      std::memcpy(&bytes[i * info.block_bytes], from, info.block_bytes);
    }
    return bytes;
  }
  for (size_t i = 0; i + 8 <= bytes.size(); i += 8) {
    const uint64_t v = rng();
    std::memcpy(&bytes[i], &v, 8);
  }
  for (size_t i = bytes.size() / 8 * 8; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::byte>(rng() & 0xff);
  const ScaleOffsets at = scale_offsets(type);
  const int exponent = info.block_size == 256                                     ? 4
                       : type == TensorType::kQ8_0 || type == TensorType::kIQ4_NL ? 4
                                                                                  : 7;
  for (size_t b = 0; b < bytes.size(); b += info.block_bytes) {
    for (const int offset : {at.d, at.m}) {
      if (offset < 0) continue;
      const uint64_t r = rng();
      auto bits = static_cast<uint16_t>((r & 0x83ffu) | static_cast<unsigned>(exponent) << 10);
      if (offset == at.m) bits &= 0x7fff;
      constexpr uint16_t kSpecial[] = {0, 0x8000, 1, 0x83ff, 0x0201, 0x7bff, 0xfbff, 0x3c00};
      if (special && r >> 32 & 1) bits = kSpecial[r >> 40 & 7];
      std::memcpy(&bytes[b + static_cast<size_t>(offset)], &bits, 2);
    }
  }
  return bytes;
}

// Row `row` of the matrix in the file's order, decoded.
inline std::vector<float> decoded_row(TensorType type, const std::vector<std::byte>& blocks, int row,
                                      int n_cols) {
  const gguf::TypeInfo& info = *gguf::type_info(type);
  const size_t row_bytes = static_cast<size_t>(n_cols) / info.block_size * info.block_bytes;
  std::vector<float> out(static_cast<size_t>(n_cols));
  gguf::dequantizer(type)(blocks.data() + static_cast<size_t>(row) * row_bytes, out.data(), out.size());
  return out;
}

// A packed matrix in device memory, and the file's blocks that it came from.
struct TestMatrix {
  std::vector<std::byte> blocks;
  cu::DeviceBuffer<std::byte> packed;
  cu::PackedMatrix matrix;

  TestMatrix(TensorType type, int n_rows, int n_cols, uint32_t seed, bool special = false,
             cu::RowOrder order = {})
      : blocks(random_blocks(type, static_cast<size_t>(n_rows) * static_cast<size_t>(n_cols), seed, special)),
        packed(cu::packed_bytes(type, n_rows, n_cols)) {
    packed.fill_bytes(0xff);
    const cu::DeviceBuffer<std::byte> file{std::span<const std::byte>(blocks)};
    matrix = {packed.data(), type, n_rows, n_cols};
    cu::pack({.file_blocks = file.data(),
              .out = matrix,
              .out_data = packed.data(),
              .first_row = 0,
              .n_rows = n_rows,
              .order = order},
             nullptr);
    cu::check(cudaDeviceSynchronize(), "pack");
  }
};

}  // namespace minfer::test
