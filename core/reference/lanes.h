// Private to the sources that are compiled once for each instruction set: one vector of floats. Multiply-add
// is spelled out (fused where the level has it), so that no tile shape can round otherwise than another one.
#pragma once

#if defined(__AVX2__) || defined(__AVX512F__)
#include <immintrin.h>
#endif
#include <string.h>

namespace minfer::MINFER_ISA_NAMESPACE {
namespace {

#if defined(__AVX512F__)

constexpr int kLanes = 16;
using Lanes = __m512;

inline Lanes load(const float* p) {
  return _mm512_loadu_ps(p);
}
inline void store(float* p, Lanes v) {
  _mm512_storeu_ps(p, v);
}
inline Lanes splat(float v) {
  return _mm512_set1_ps(v);
}
inline Lanes multiply_add(Lanes a, Lanes b, Lanes sum) {
  return _mm512_fmadd_ps(a, b, sum);
}

// out[i] = sum of the lanes of v[i], halves added to halves: 8 + 8, 4 + 4, 2 + 2, 1 + 1.
inline void sum_lanes4(const Lanes v[4], float* out) {
  // Compiler shuffles: GCC 12 warns of undefined values inside its own AVX-512 shuffle intrinsics.
  const Lanes ab =
      __builtin_shufflevector(v[0], v[1], 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23) +
      __builtin_shufflevector(v[0], v[1], 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
  const Lanes cd =
      __builtin_shufflevector(v[2], v[3], 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23) +
      __builtin_shufflevector(v[2], v[3], 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
  Lanes s = __builtin_shufflevector(ab, cd, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27) +
            __builtin_shufflevector(ab, cd, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
  s += __builtin_shufflevector(s, s, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13);
  s += __builtin_shufflevector(s, s, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14);
  const __m128 sums = __builtin_shufflevector(s, s, 0, 4, 8, 12);
  memcpy(out, &sums, sizeof sums);
}

#elif defined(__AVX2__)

constexpr int kLanes = 8;
using Lanes = __m256;

inline Lanes load(const float* p) {
  return _mm256_loadu_ps(p);
}
inline void store(float* p, Lanes v) {
  _mm256_storeu_ps(p, v);
}
inline Lanes splat(float v) {
  return _mm256_set1_ps(v);
}
inline Lanes multiply_add(Lanes a, Lanes b, Lanes sum) {
  return _mm256_fmadd_ps(a, b, sum);
}

// out[i] = sum of the lanes of v[i], halves added to halves: 4 + 4, 2 + 2, 1 + 1.
inline void sum_lanes4(const Lanes v[4], float* out) {
  const Lanes ab =
      _mm256_add_ps(_mm256_permute2f128_ps(v[0], v[1], 0x20), _mm256_permute2f128_ps(v[0], v[1], 0x31));
  const Lanes cd =
      _mm256_add_ps(_mm256_permute2f128_ps(v[2], v[3], 0x20), _mm256_permute2f128_ps(v[2], v[3], 0x31));
  const Lanes s = _mm256_add_ps(_mm256_unpacklo_ps(ab, cd), _mm256_unpackhi_ps(ab, cd));  // a c a c | b d b d
  const __m128 ac = _mm256_castps256_ps128(s);
  const __m128 bd = _mm256_extractf128_ps(s, 1);
  _mm_storeu_ps(out, _mm_add_ps(_mm_unpacklo_ps(ac, bd), _mm_unpackhi_ps(ac, bd)));
}

#else

constexpr int kLanes = 4;
typedef float Lanes __attribute__((vector_size(16)));

inline Lanes load(const float* p) {
  Lanes v;
  memcpy(&v, p, sizeof v);
  return v;
}
inline void store(float* p, Lanes v) {
  memcpy(p, &v, sizeof v);
}
inline Lanes splat(float v) {
  return Lanes{v, v, v, v};
}
inline Lanes multiply_add(Lanes a, Lanes b, Lanes sum) {
  return sum + a * b;
}  // built with -ffp-contract=off

// out[i] = sum of the lanes of v[i], halves added to halves: 2 + 2, 1 + 1.
inline void sum_lanes4(const Lanes v[4], float* out) {
  for (int i = 0; i < 4; ++i) out[i] = (v[i][0] + v[i][2]) + (v[i][1] + v[i][3]);
}

#endif

inline float sum_lanes(Lanes v) {
  const Lanes four[4] = {v, v, v, v};
  float out[4];
  sum_lanes4(four, out);
  return out[0];
}

}  // namespace
}  // namespace minfer::MINFER_ISA_NAMESPACE
