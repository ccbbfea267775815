// What the tests of kernels share: skipping without a GPU, random operands, errors against an f64 oracle.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "cuda/runtime/buffer.h"
#include "cuda/runtime/device_info.h"
#include "cuda/runtime/stream.h"
#include "gguf/dequantize.h"
#include "tests/support/catch.h"

namespace minfer::test {

inline bool has_gpu() { return !cu::list_devices().found.empty(); }

#define MINFER_REQUIRE_GPU() \
  if (!minfer::test::has_gpu()) MINFER_SKIP("no GPU: " + minfer::cu::list_devices().why_none)

inline std::vector<float> random_normal(size_t n, uint32_t seed, float sigma = 1.0f) {
  std::mt19937 rng(seed);
  std::normal_distribution<float> normal(0.0f, sigma);
  std::vector<float> values(n);
  for (float& v : values) v = normal(rng);
  return values;
}

inline std::vector<half> to_half(std::span<const float> values) {
  std::vector<half> out(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    __half_raw raw;
    raw.x = gguf::f32_to_f16(values[i]);
    out[i] = raw;
  }
  return out;
}

inline float to_float(half value) { return gguf::f16_to_f32(static_cast<__half_raw>(value).x); }

// Largest |got - want| of a row over the root mean square of the wanted row.
inline double row_error(std::span<const float> got, std::span<const double> want) {
  double sum = 0, worst = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    sum += want[i] * want[i];
    const double error = std::abs(static_cast<double>(got[i]) - want[i]);
    worst = std::isnan(error) ? INFINITY : std::max(worst, error);
  }
  return worst / std::sqrt(sum / static_cast<double>(want.size()) + 1e-300);
}

}  // namespace minfer::test
