// The blocks of the supported quantized types, bit by bit. Everything is little-endian and made of bytes, so
// that a block may stand at any address. Plain C++: device code may include this header.
//
// "x[i]" is value i of the block. In the drawings a byte's high bit is on the left.
#pragma once

#include <cstdint>

namespace minfer::gguf {

struct F16Bits {
  uint8_t bytes[2];  // an IEEE binary16 number, low byte first
};

inline constexpr int kBlock = 32;        // values in a block of the Q*_0, Q*_1 and IQ4_NL types
inline constexpr int kSuperBlock = 256;  // values in a block of the K and IQ4_XS types
inline constexpr int kScaleBytesK = 12;  // packed scales of Q3_K, Q4_K and Q5_K

// qs[j]:  x[j+16] x[j]       (4 bits each), here and in the four types below
//         7654    3210
// x = (q - 8) * d
struct BlockQ4_0 {
  F16Bits d;
  uint8_t qs[kBlock / 2];
};
static_assert(sizeof(BlockQ4_0) == 18 && alignof(BlockQ4_0) == 1);

// x = q * d + m
struct BlockQ4_1 {
  F16Bits d, m;
  uint8_t qs[kBlock / 2];
};
static_assert(sizeof(BlockQ4_1) == 20);

// qh, read as a 32-bit little-endian number: bit i is the fifth (highest) bit of x[i].
// x = (q - 16) * d
struct BlockQ5_0 {
  F16Bits d;
  uint8_t qh[kBlock / 8];
  uint8_t qs[kBlock / 2];
};
static_assert(sizeof(BlockQ5_0) == 22);

// x = q * d + m
struct BlockQ5_1 {
  F16Bits d, m;
  uint8_t qh[kBlock / 8];
  uint8_t qs[kBlock / 2];
};
static_assert(sizeof(BlockQ5_1) == 24);

// x = q * d
struct BlockQ8_0 {
  F16Bits d;
  int8_t qs[kBlock];
};
static_assert(sizeof(BlockQ8_0) == 34);

// x = kIq4Values[q] * d, nibbles as in Q4_0
struct BlockIQ4_NL {
  F16Bits d;
  uint8_t qs[kBlock / 2];
};
static_assert(sizeof(BlockIQ4_NL) == 18);

// The K types: 256 values under one or two f16 scales, in sub-blocks of 16 or 32 with small integer scales of
// their own.

// 16 sub-blocks of 16. scales[s]: min  scale  of sub-block s
//                                 7654 3210
// Each half h of the block (128 values) owns 32 bytes of qs:
//   qs[32h+j]:  x[128h+96+j] x[128h+64+j] x[128h+32+j] x[128h+j]
//               76           54           32           10
// x = (d * scale) * q - dmin * min
struct BlockQ2_K {
  uint8_t scales[kSuperBlock / 16];
  uint8_t qs[kSuperBlock / 4];
  F16Bits d, dmin;
};
static_assert(sizeof(BlockQ2_K) == 84);

// 16 sub-blocks of 16. qs holds the low two bits of q as in Q2_K; bit (4h + k) of hmask[j] is the third bit
// of x[128h + 32k + j]. Scales are 6 bits with an offset of 32:
//   scales[s], s < 8:      low four bits of scale s+8   low four bits of scale s
//                          7654                         3210
//   scales[8 + s], s < 4:  high bits of scale s+12  s+8  s+4  s
//                                             76    54   32   10
// x = (d * (scale - 32)) * (q - 4)
struct BlockQ3_K {
  uint8_t hmask[kSuperBlock / 8];
  uint8_t qs[kSuperBlock / 4];
  uint8_t scales[kScaleBytesK];
  F16Bits d;
};
static_assert(sizeof(BlockQ3_K) == 110);

// 8 sub-blocks of 32, each with a scale and a min of 6 bits, s < 4:
//   scales[s]:      bits 4, 5 of scale s+4   scale s
//                   76                       543210
//   scales[4 + s]:  bits 4, 5 of min s+4     min s
//                   76                       543210
//   scales[8 + s]:  bits 0-3 of min s+4      bits 0-3 of scale s+4
//                   7654                     3210
// qs[32k+j], k < 4:  x[64k+32+j] x[64k+j]
//                    7654        3210
// x = (d * scale) * q - dmin * min
struct BlockQ4_K {
  F16Bits d, dmin;
  uint8_t scales[kScaleBytesK];
  uint8_t qs[kSuperBlock / 2];
};
static_assert(sizeof(BlockQ4_K) == 144);

// Q4_K and a fifth bit: bit s of qh[j] is the highest bit of x[32s + j].
struct BlockQ5_K {
  F16Bits d, dmin;
  uint8_t scales[kScaleBytesK];
  uint8_t qh[kSuperBlock / 8];
  uint8_t qs[kSuperBlock / 2];
};
static_assert(sizeof(BlockQ5_K) == 176);

// 16 sub-blocks of 16. Each half h of the block owns 64 bytes of ql and 32 of qh (j < 32):
//   ql[64h+j]:     x[128h+64+j] x[128h+j]         (low four bits)
//   ql[64h+32+j]:  x[128h+96+j] x[128h+32+j]
//                  7654         3210
//   qh[32h+j]:     x[128h+96+j] x[128h+64+j] x[128h+32+j] x[128h+j]   (high two bits)
//                  76           54           32           10
// x = (d * scale) * (q - 32)
struct BlockQ6_K {
  uint8_t ql[kSuperBlock / 2];
  uint8_t qh[kSuperBlock / 4];
  int8_t scales[kSuperBlock / 16];
  F16Bits d;
};
static_assert(sizeof(BlockQ6_K) == 210);

// 8 sub-blocks of 32, each with a scale of 6 bits with an offset of 32: sub-block s has its low four bits in
// nibble s of scales_l (low nibble first) and its high two bits in bits 2s, 2s+1 of the 16-bit scales_h.
// qs[16s+j], j < 16:  x[32s+16+j] x[32s+j]
//                     7654        3210
// x = (d * (scale - 32)) * kIq4Values[q]
struct BlockIQ4_XS {
  F16Bits d;
  uint8_t scales_h[2];
  uint8_t scales_l[kSuperBlock / 64];
  uint8_t qs[kSuperBlock / 2];
};
static_assert(sizeof(BlockIQ4_XS) == 136);

// The sixteen levels of the IQ4 types: nearer together around zero, where weights are dense.
inline constexpr int8_t kIq4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                          1,    13,   25,  38,  53,  69,  89,  113};

}  // namespace minfer::gguf
