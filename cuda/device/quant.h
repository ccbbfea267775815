// Device decoders: eight consecutive values of a row of a packed matrix, in f32, bit for bit what
// gguf::dequantizer gives. The order of multiplications and additions is the format's, and the _rn intrinsics
// keep nvcc from contracting them. Rows of types that are not tiled are the file's blocks one after the
// other: every block size is even, so a block is at least 2-byte aligned.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "cuda/device/quant_tiles.h"
#include "gguf/block_layouts.h"
#include "gguf/blocks.h"

namespace minfer::cu {

using gguf::TensorType;

__device__ inline float f16_at(const void* p) {
  return __half2float(*static_cast<const half*>(p));
}
__device__ inline uint32_t u16_at(const void* p) {
  return *static_cast<const uint16_t*>(p);
}
__device__ inline uint32_t u32_at_even(const void* p) {  // a 32-bit number at a 2-byte aligned address
  return u16_at(p) | u16_at(static_cast<const uint8_t*>(p) + 2) << 16;
}
__device__ inline float iq4_value(uint32_t q) {  // q < 16
  // kIq4Values, four to a word; __byte_perm picks one of eight bytes, sign extension by the cast.
  const uint32_t a = __byte_perm(0xbfad9881u, 0xf6eaddcfu, q & 7),
                 b = __byte_perm(0x26190d01u, 0x71594535u, q & 7);
  return static_cast<float>(static_cast<int8_t>((q < 8 ? a : b) & 0xff));
}
// Bit i (0 .. 7) of eight values: the low or high nibbles of eight bytes.
__device__ inline void nibbles8(const uint8_t* bytes, int shift, uint32_t (&q)[8]) {
  const uint32_t w[2] = {u32_at_even(bytes) >> shift, u32_at_even(bytes + 4) >> shift};
#pragma unroll
  for (int e = 0; e < 8; ++e) q[e] = w[e / 4] >> (8 * (e % 4)) & 15u;
}

// decode8<type>(data, row, n_cols, c, out): values [8c, 8c + 8) of row `row`.
template <class Block>
__device__ inline const Block& block_at(const void* data, int64_t row, int n_cols, int values, int c) {
  return static_cast<const Block*>(data)[row * (n_cols / values) + c / (values / 8)];
}

template <TensorType kType>
struct Decoder;

template <>
struct Decoder<TensorType::kF32> {
  __device__ static void decode8(const void* data, int64_t row, int n_cols, int c, float (&out)[8]) {
    const float4* in =
        reinterpret_cast<const float4*>(static_cast<const float*>(data) + row * n_cols + 8 * c);
    const float4 a = in[0], b = in[1];
    out[0] = a.x, out[1] = a.y, out[2] = a.z, out[3] = a.w;
    out[4] = b.x, out[5] = b.y, out[6] = b.z, out[7] = b.w;
  }
};

template <>
struct Decoder<TensorType::kF16> {
  __device__ static void decode8(const void* data, int64_t row, int n_cols, int c, float (&out)[8]) {
    const uint4 v = *reinterpret_cast<const uint4*>(static_cast<const half*>(data) + row * n_cols + 8 * c);
    const uint32_t w[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float2 f = __half22float2(*reinterpret_cast<const half2*>(&w[i]));
      out[2 * i] = f.x, out[2 * i + 1] = f.y;
    }
  }
};

template <>
struct Decoder<TensorType::kBF16> {
  __device__ static void decode8(const void* data, int64_t row, int n_cols, int c, float (&out)[8]) {
    const uint4 v =
        *reinterpret_cast<const uint4*>(static_cast<const uint16_t*>(data) + row * n_cols + 8 * c);
    const uint32_t w[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      out[2 * i] = __uint_as_float(w[i] << 16);
      out[2 * i + 1] = __uint_as_float(w[i] & 0xffff0000u);
    }
  }
};

// The 32-value types in pieces (quant_tiles.h): c % 8 / 4 is the block of the two, c % 4 the lane quarter.

template <class Piece>
__device__ inline const uint8_t* piece_at(const void* data, int64_t row, int n_cols, int c) {
  return static_cast<const uint8_t*>(data) +
         (row / kTileRows * (n_cols / kPieceCols) + c / 8) * Piece::kBytes;
}
__device__ inline void piece_nibbles(const uint8_t* piece, int row, int c, uint32_t (&v)[8]) {
  const uint2 w = *reinterpret_cast<const uint2*>(piece + Q4_0Piece::word(row, c % 4, 0));
#pragma unroll
  for (int e = 0; e < 8; ++e) v[e] = (e < 4 ? w.x : w.y) >> Q4_0Piece::nibble_bit(c / 4 % 2, e) & 15u;
}
__device__ inline void decode_q4_0_piece(const uint8_t* piece, int64_t row, int c, float (&out)[8]) {
  const int r = static_cast<int>(row % kTileRows);
  const float d = f16_at(piece + Q4_0Piece::d(r, c / 4 % 2));
  uint32_t q[8];
  piece_nibbles(piece, r, c, q);
#pragma unroll
  for (int e = 0; e < 8; ++e) out[e] = __fmul_rn(static_cast<float>(static_cast<int>(q[e]) - 8), d);
}
__device__ inline void decode_q4_1_piece(const uint8_t* piece, int64_t row, int c, float (&out)[8]) {
  const int r = static_cast<int>(row % kTileRows), odd = c / 4 % 2;
  const float d = f16_at(piece + Q4_1Piece::d(r, odd)), m = f16_at(piece + Q4_1Piece::m(r, odd));
  uint32_t q[8];
  piece_nibbles(piece, r, c, q);
#pragma unroll
  for (int e = 0; e < 8; ++e) out[e] = __fadd_rn(__fmul_rn(static_cast<float>(q[e]), d), m);
}
__device__ inline void decode_q5_0_piece(const uint8_t* piece, int64_t row, int c, float (&out)[8]) {
  const int r = static_cast<int>(row % kTileRows), odd = c / 4 % 2;
  const float d = f16_at(piece + Q5_0Piece::d(r, odd));
  const auto high = *reinterpret_cast<const uint32_t*>(piece + Q5_0Piece::high(r, c % 4));
  uint32_t q[8];
  piece_nibbles(piece, r, c, q);
#pragma unroll
  for (int e = 0; e < 8; ++e) {
    const uint32_t v = q[e] | (high >> Q5_0Piece::high_bit(odd, r, e) & 1u) << 4;
    out[e] = __fmul_rn(static_cast<float>(static_cast<int>(v) - 16), d);
  }
}
__device__ inline void decode_q8_0_piece(const uint8_t* piece, int64_t row, int c, float (&out)[8]) {
  const int r = static_cast<int>(row % kTileRows), odd = c / 4 % 2;
  const float d = f16_at(piece + Q8_0Piece::d(r, odd));
#pragma unroll
  for (int e = 0; e < 8; ++e) {
    out[e] = __fmul_rn(static_cast<float>(int{piece[Q8_0Piece::byte(odd, r, c % 4, e)]} - 128), d);
  }
}

// The 32-value types: c % 4 = 0, 1 are low nibbles, 2, 3 high ones, of the bytes from 8 * (c % 2) on.

template <>
struct Decoder<TensorType::kQ4_0> {
  __device__ static void decode8(const void* data, int64_t row, int n_cols, int c, float (&out)[8]) {
    if (n_cols % kPieceCols == 0)
      return decode_q4_0_piece(piece_at<Q4_0Piece>(data, row, n_cols, c), row, c, out);
    const auto& b = block_at<gguf::BlockQ4_0>(data, row, n_cols, 32, c);
    const float d = f16_at(&b.d);
    uint32_t q[8];
    nibbles8(b.qs + c % 2 * 8, c % 4 / 2 * 4, q);
#pragma unroll
    for (int e = 0; e < 8; ++e) out[e] = __fmul_rn(static_cast<float>(static_cast<int>(q[e]) - 8), d);
  }
};

template <>
struct Decoder<TensorType::kQ4_1> {
  __device__ static void decode8(const void* data, int64_t row, int n_cols, int c, float (&out)[8]) {
    if (n_cols % kPieceCols == 0)
      return decode_q4_1_piece(piece_at<Q4_1Piece>(data, row, n_cols, c), row, c, out);
    const auto& b = block_at<gguf::BlockQ4_1>(data, row, n_cols, 32, c);
    const float d = f16_at(&b.d), m = f16_at(&b.m);
    uint32_t q[8];
    nibbles8(b.qs + c % 2 * 8, c % 4 / 2 * 4, q);
#pragma unroll
    for (int e = 0; e < 8; ++e) out[e] = __fadd_rn(__fmul_rn(static_cast<float>(q[e]), d), m);
  }
};

template <>
struct Decoder<TensorType::kQ5_0> {
  __device__ static void decode8(const void* data, int64_t row, int n_cols, int c, float (&out)[8]) {
    if (n_cols % kPieceCols == 0)
      return decode_q5_0_piece(piece_at<Q5_0Piece>(data, row, n_cols, c), row, c, out);
    const auto& b = block_at<gguf::BlockQ5_0>(data, row, n_cols, 32, c);
    const float d = f16_at(&b.d);
    const uint32_t high = u32_at_even(b.qh) >> (c % 4 * 8);
    uint32_t q[8];
    nibbles8(b.qs + c % 2 * 8, c % 4 / 2 * 4, q);
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      out[e] = __fmul_rn(static_cast<float>(static_cast<int>(q[e] | (high >> e & 1u) << 4) - 16), d);
    }
  }
};

template <>
struct Decoder<TensorType::kQ5_1> {
  __device__ static void decode8(const void* data, int64_t row, int n_cols, int c, float (&out)[8]) {
    const auto& b = block_at<gguf::BlockQ5_1>(data, row, n_cols, 32, c);
    const float d = f16_at(&b.d), m = f16_at(&b.m);
    const uint32_t high = u32_at_even(b.qh) >> (c % 4 * 8);
    uint32_t q[8];
    nibbles8(b.qs + c % 2 * 8, c % 4 / 2 * 4, q);
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      out[e] = __fadd_rn(__fmul_rn(static_cast<float>(q[e] | (high >> e & 1u) << 4), d), m);
    }
  }
};

template <>
struct Decoder<TensorType::kQ8_0> {
  __device__ static void decode8(const void* data, int64_t row, int n_cols, int c, float (&out)[8]) {
    if (n_cols % kPieceCols == 0)
      return decode_q8_0_piece(piece_at<Q8_0Piece>(data, row, n_cols, c), row, c, out);
    const auto& b = block_at<gguf::BlockQ8_0>(data, row, n_cols, 32, c);
    const float d = f16_at(&b.d);
    const uint32_t w[2] = {u32_at_even(b.qs + c % 4 * 8), u32_at_even(b.qs + c % 4 * 8 + 4)};
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      out[e] = __fmul_rn(static_cast<float>(static_cast<int8_t>(w[e / 4] >> (8 * (e % 4)) & 0xffu)), d);
    }
  }
};

template <>
struct Decoder<TensorType::kIQ4_NL> {
  __device__ static void decode8(const void* data, int64_t row, int n_cols, int c, float (&out)[8]) {
    const auto& b = block_at<gguf::BlockIQ4_NL>(data, row, n_cols, 32, c);
    const float d = f16_at(&b.d);
    uint32_t q[8];
    nibbles8(b.qs + c % 2 * 8, c % 4 / 2 * 4, q);
#pragma unroll
    for (int e = 0; e < 8; ++e) out[e] = __fmul_rn(d, iq4_value(q[e]));
  }
};

// The 256-value types: i = c % 32 counts eights within the block, s is a sub-block.

template <>
struct Decoder<TensorType::kIQ4_XS> {
  __device__ static void decode8(const void* data, int64_t row, int n_cols, int c, float (&out)[8]) {
    const auto& b = block_at<gguf::BlockIQ4_XS>(data, row, n_cols, 256, c);
    const int i = c % 32, s = i / 4;
    const uint32_t low = b.scales_l[s / 2] >> (s % 2 * 4) & 15u, high = u16_at(b.scales_h) >> (2 * s) & 3u;
    const float scale = __fmul_rn(f16_at(&b.d), static_cast<float>(static_cast<int>(low | high << 4) - 32));
    uint32_t q[8];
    nibbles8(b.qs + 16 * s + i % 2 * 8, i % 4 / 2 * 4, q);
#pragma unroll
    for (int e = 0; e < 8; ++e) out[e] = __fmul_rn(scale, iq4_value(q[e]));
  }
};

template <>
struct Decoder<TensorType::kQ2_K> {
  __device__ static void decode8(const void* data, int64_t row, int n_cols, int c, float (&out)[8]) {
    const auto& b = block_at<gguf::BlockQ2_K>(data, row, n_cols, 256, c);
    const int i = c % 32, s = i / 2;
    const float scale = __fmul_rn(f16_at(&b.d), static_cast<float>(b.scales[s] & 15));
    const float min = __fmul_rn(f16_at(&b.dmin), static_cast<float>(b.scales[s] >> 4));
    const uint8_t* qs = b.qs + s / 8 * 32 + i % 4 * 8;
    const int shift = s / 2 % 4 * 2;
    const uint32_t w[2] = {u32_at_even(qs) >> shift, u32_at_even(qs + 4) >> shift};
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      out[e] = __fsub_rn(__fmul_rn(scale, static_cast<float>(w[e / 4] >> (8 * (e % 4)) & 3u)), min);
    }
  }
};

template <>
struct Decoder<TensorType::kQ3_K> {
  __device__ static void decode8(const void* data, int64_t row, int n_cols, int c, float (&out)[8]) {
    const auto& b = block_at<gguf::BlockQ3_K>(data, row, n_cols, 256, c);
    const int i = c % 32, s = i / 2;
    const int low = s < 8 ? b.scales[s] & 15 : b.scales[s - 8] >> 4;
    const int high = b.scales[8 + s % 4] >> (s / 4 * 2) & 3;
    const float scale = __fmul_rn(f16_at(&b.d), static_cast<float>((low | high << 4) - 32));
    const uint8_t *qs = b.qs + s / 8 * 32 + i % 4 * 8, *hmask = b.hmask + i % 4 * 8;
    const int shift = s / 2 % 4 * 2, bit = s / 2;
    const uint32_t w[2] = {u32_at_even(qs) >> shift, u32_at_even(qs + 4) >> shift};
    const uint32_t h[2] = {u32_at_even(hmask) >> bit, u32_at_even(hmask + 4) >> bit};
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const uint32_t q = (w[e / 4] >> (8 * (e % 4)) & 3u) | (h[e / 4] >> (8 * (e % 4)) & 1u) << 2;
      out[e] = __fmul_rn(scale, static_cast<float>(static_cast<int>(q) - 4));
    }
  }
};

template <>
struct Decoder<TensorType::kQ5_K> {
  __device__ static void decode8(const void* data, int64_t row, int n_cols, int c, float (&out)[8]) {
    const auto& b = block_at<gguf::BlockQ5_K>(data, row, n_cols, 256, c);
    const int i = c % 32, s = i / 4, t = s % 4;
    const int low = s < 4 ? b.scales[t] & 63 : (b.scales[8 + t] & 15) | b.scales[t] >> 6 << 4;
    const int low_min = s < 4 ? b.scales[4 + t] & 63 : b.scales[8 + t] >> 4 | b.scales[4 + t] >> 6 << 4;
    const float scale = __fmul_rn(f16_at(&b.d), static_cast<float>(low));
    const float min = __fmul_rn(f16_at(&b.dmin), static_cast<float>(low_min));
    const uint8_t* qh = b.qh + i % 4 * 8;
    const uint32_t h[2] = {u32_at_even(qh) >> s, u32_at_even(qh + 4) >> s};
    uint32_t q[8];
    nibbles8(b.qs + s / 2 * 32 + i % 4 * 8, s % 2 * 4, q);
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const uint32_t v = q[e] | (h[e / 4] >> (8 * (e % 4)) & 1u) << 4;
      out[e] = __fsub_rn(__fmul_rn(scale, static_cast<float>(v)), min);
    }
  }
};

// The tiled types (quant_tiles.h).

template <class Tile>
__device__ inline const uint8_t* tile_at(const void* data, int64_t row, int n_cols, int c) {
  return static_cast<const uint8_t*>(data) + (row / kTileRows * (n_cols / kTileCols) + c / 32) * Tile::kBytes;
}

template <>
struct Decoder<TensorType::kQ4_K> {
  __device__ static void decode8(const void* data, int64_t row, int n_cols, int c, float (&out)[8]) {
    const uint8_t* tile = tile_at<Q4Tile>(data, row, n_cols, c);
    const int r = static_cast<int>(row % kTileRows), i = c % 32, s = i / 4, q = i % 4;
    const uint8_t* bits = tile + Q4Tile::scales(r, s / 2);  // 24 bits, of three bytes
    const uint32_t packed = (bits[0] | uint32_t{bits[1]} << 8 | uint32_t{bits[2]} << 16) >> (s % 2 * 6);
    const float scale = __fmul_rn(f16_at(tile + Q4Tile::d(r)), static_cast<float>(packed & 63u));
    const float min = __fmul_rn(f16_at(tile + Q4Tile::dmin(r)), static_cast<float>(packed >> 12 & 63u));
    const uint2 w = *reinterpret_cast<const uint2*>(tile + Q4Tile::word(s / 2, r, q, 0));
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const uint32_t v = (e < 4 ? w.x : w.y) >> (e % 2 * 16 + e % 4 / 2 * 8 + s % 2 * 4) & 15u;
      out[e] = __fsub_rn(__fmul_rn(scale, static_cast<float>(v)), min);
    }
  }
};

template <>
struct Decoder<TensorType::kQ6_K> {
  __device__ static void decode8(const void* data, int64_t row, int n_cols, int c, float (&out)[8]) {
    const uint8_t* tile = tile_at<Q6Tile>(data, row, n_cols, c);
    const int r = static_cast<int>(row % kTileRows), s = c % 32 / 2, chunk = s / 2;
    const auto int_scale = static_cast<int8_t>(tile[Q6Tile::scales(r, s / 4) + s % 4]);
    const float scale = __fmul_rn(f16_at(tile + Q6Tile::d(r)), static_cast<float>(int_scale));
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const int q = c % 2 * 2 + e / 4;
      const uint32_t low = *reinterpret_cast<const uint32_t*>(tile + Q6Tile::low(chunk, r, q));
      const uint32_t high = *reinterpret_cast<const uint32_t*>(tile + Q6Tile::high(chunk / 2, r, q));
      const uint32_t v = (low >> Q6Tile::low_bit(s % 2, e % 4) & 15u) |
                         (high >> Q6Tile::high_bit(chunk, s % 2, e % 4) & 3u) << 4;
      out[e] = __fmul_rn(scale, static_cast<float>(static_cast<int>(v) - 32));
    }
  }
};

// Calls f.template operator()<type>() for the supported type of that value; false where there is none.
template <class F>
bool dispatch_type(TensorType type, F&& f) {
  switch (type) {
#define MINFER_TYPE(name)                      \
  case TensorType::name:                       \
    f.template operator()<TensorType::name>(); \
    return true;
    MINFER_TYPE(kF32)
    MINFER_TYPE(kF16)
    MINFER_TYPE(kBF16)
    MINFER_TYPE(kQ4_0)
    MINFER_TYPE(kQ4_1)
    MINFER_TYPE(kQ5_0)
    MINFER_TYPE(kQ5_1)
    MINFER_TYPE(kQ8_0)
    MINFER_TYPE(kQ2_K)
    MINFER_TYPE(kQ3_K)
    MINFER_TYPE(kQ4_K)
    MINFER_TYPE(kQ5_K)
    MINFER_TYPE(kQ6_K)
    MINFER_TYPE(kIQ4_NL)
    MINFER_TYPE(kIQ4_XS)
#undef MINFER_TYPE
    default:
      return false;
  }
}

}  // namespace minfer::cu
