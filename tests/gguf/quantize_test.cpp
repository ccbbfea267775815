#include "gguf/quantize.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "gguf/dequantize.h"
#include "gguf/error.h"
#include "tests/support/catch.h"

namespace minfer::gguf {
namespace {

std::vector<float> round_trip(TensorType type, const std::vector<float>& x) {
  const std::vector<std::byte> blocks = quantize(type, x.data(), x.size());
  REQUIRE(blocks.size() == x.size() / type_info(type)->block_size * type_info(type)->block_bytes);
  std::vector<float> y(x.size());
  dequantizer(type)(blocks.data(), y.data(), y.size());
  return y;
}

std::string error_of(TensorType type, const std::vector<float>& x) {
  try {
    quantize(type, x.data(), x.size());
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// How a type stores x. Plain: level * d (+ m). Super: in sub-blocks of n_sub with integer scales up to
// max_scale. Levels reach from 0 to `reach` in the shorter direction; half_gap: half of the widest gap
// between levels.
struct Format {
  TensorType type;
  bool affine;
  int n_sub, max_scale;  // max_scale 0: plain
  double reach, half_gap;
};

constexpr Format kFormats[] = {
    {TensorType::kQ4_0, false, 32, 0, 7, 0.5},    {TensorType::kQ4_1, true, 32, 0, 15, 0.5},
    {TensorType::kQ5_0, false, 32, 0, 15, 0.5},   {TensorType::kQ5_1, true, 32, 0, 31, 0.5},
    {TensorType::kQ8_0, false, 32, 0, 127, 0.5},  {TensorType::kIQ4_NL, false, 32, 0, 113, 12},
    {TensorType::kQ2_K, true, 16, 15, 3, 0.5},    {TensorType::kQ3_K, false, 16, 31, 3, 0.5},
    {TensorType::kQ4_K, true, 32, 63, 15, 0.5},   {TensorType::kQ5_K, true, 32, 63, 31, 0.5},
    {TensorType::kQ6_K, false, 16, 127, 31, 0.5}, {TensorType::kIQ4_XS, false, 32, 31, 113, 12},
};

// An upper bound of the f16 that a magnitude is rounded up to: one step of 11 bits, or of the subnormal
// numbers.
double f16_above(double magnitude) {
  return magnitude * (1 + 0x1p-10) + 0x1p-24;
}

struct Extent {
  double min, max, magnitude;
};

Extent extent(const float* x, int n) {
  const auto [min, max] = std::minmax_element(x, x + n);
  return {*min, *max, std::max(std::fabs(*min), std::fabs(*max))};
}

// Rounding of the few f32 operations on both ways, each of at most twice the largest magnitude.
double f32_noise(double magnitude) {
  return 0x1p-21 * magnitude;
}

// Plain types: the step that covers the block, rounded up, and half a gap of it.
double plain_bound(const Format& format, const float* x) {
  const Extent e = extent(x, 32);
  const double offset_error = format.affine ? std::fabs(e.min) * 0x1p-10 + 0x1p-24 : 0;
  const double span = format.affine ? e.max - e.min + offset_error : e.magnitude;
  return format.half_gap * f16_above(span / format.reach) + f32_noise(e.magnitude);
}

// Super-blocks: a covering step is at most one unit d of the integer scales above the step that is needed,
// likewise for the min. The root mean square of the error is at most that of the covering choice, since the
// best is kept.
std::vector<double> super_bounds(const Format& format, const float* x) {
  const int n_subs = 256 / format.n_sub;
  double largest_min = 0, largest_step = 0;
  for (int s = 0; s < n_subs; ++s) {
    largest_min = std::max(largest_min, -extent(x + s * format.n_sub, format.n_sub).min);
  }
  const double dmin = format.affine ? f16_above(largest_min / format.max_scale) : 0;
  std::vector<double> steps;
  for (int s = 0; s < n_subs; ++s) {
    const Extent e = extent(x + s * format.n_sub, format.n_sub);
    const double span = format.affine ? std::max(e.max, 0.0) - std::min(e.min, 0.0) + dmin : e.magnitude;
    steps.push_back(span / format.reach);
    largest_step = std::max(largest_step, steps.back());
  }
  const double d = f16_above(largest_step / format.max_scale);
  for (double& step : steps) step = format.half_gap * (step + d);
  return steps;
}

void check_bounds(const Format& format, const std::vector<float>& x) {
  const std::vector<float> y = round_trip(format.type, x);
  if (format.max_scale == 0) {
    for (size_t i = 0; i < x.size(); ++i) {
      const double bound = plain_bound(format, x.data() + i / 32 * 32);
      if (std::fabs(double{x[i]} - y[i]) > bound) FAIL("value " << i << ": " << x[i] << " became " << y[i]);
    }
    return;
  }
  for (size_t block = 0; block < x.size() / 256; ++block) {
    const std::vector<double> bounds = super_bounds(format, x.data() + block * 256);
    for (size_t s = 0; s < bounds.size(); ++s) {
      const size_t first = block * 256 + s * format.n_sub;
      double sum = 0;
      for (int i = 0; i < format.n_sub; ++i) sum += std::pow(double{x[first + i]} - y[first + i], 2);
      const double error = std::sqrt(sum / format.n_sub);
      const double bound = bounds[s] + f32_noise(extent(x.data() + first, format.n_sub).magnitude);
      if (error > bound)
        FAIL("block " << block << ", sub-block " << s << ": error " << error << " > " << bound);
    }
  }
}

constexpr size_t kSize = 1024;

std::vector<float> normal(float mean, float sigma, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> distribution(mean, sigma);
  std::vector<float> x(kSize);
  for (float& value : x) value = distribution(random);
  return x;
}

std::vector<std::vector<float>> samples() {
  std::vector<std::vector<float>> all;
  for (const float sigma : {0.02f, 1.0f, 30.0f, 2e3f, 1e-4f, 1e-6f, 1e-8f, 1e-30f, 1e-42f}) {
    all.push_back(normal(0, sigma, 1));
    all.push_back(normal(3 * sigma, sigma, 2));
    all.push_back(normal(-20 * sigma, sigma, 3));  // one sign only
    all.push_back(normal(20 * sigma, sigma, 4));
  }
  for (const float value : {1.0f, -1.0f, 0.1f, -0.1f, 1000.3f, -1000.3f, 3e-7f, 65504.0f, -65504.0f}) {
    all.emplace_back(kSize, value);
  }
  std::vector<float> outliers = normal(0, 0.02f, 5);
  for (size_t i = 0; i < kSize; i += 101) outliers[i] = i % 2 ? 50.0f : -50.0f;
  all.push_back(outliers);
  std::vector<float> fading = normal(0, 1, 6);  // sub-blocks of very different sizes
  for (size_t i = 0; i < kSize; ++i) fading[i] *= std::exp2(-static_cast<float>(i / 16 % 16));
  all.push_back(fading);
  return all;
}

TEST_CASE("quantize: block types lose at most half a step of the scale that the values need",
          "[gguf][quantize]") {
  for (const Format& format : kFormats) {
    INFO(type_info(format.type)->name);
    for (const std::vector<float>& x : samples()) {
      INFO("values such as " << x[0] << ", " << x[1]);
      check_bounds(format, x);
    }
  }
}

TEST_CASE("quantize: the test covers every supported type", "[gguf][quantize]") {
  for (uint32_t number = 0; number < 64; ++number) {
    const TypeInfo* info = type_info(static_cast<TensorType>(number));
    if (!info || !info->supported || info->block_size == 1) continue;
    INFO(info->name);
    CHECK(std::any_of(std::begin(kFormats), std::end(kFormats),
                      [&](const Format& format) { return format.type == info->type; }));
  }
}

TEST_CASE("quantize: floats round to the nearest of their type", "[gguf][quantize]") {
  for (const std::vector<float>& x : samples()) {
    CHECK(round_trip(TensorType::kF32, x) == x);
    const std::vector<float> f16 = round_trip(TensorType::kF16, x);
    const std::vector<float> bf16 = round_trip(TensorType::kBF16, x);
    for (size_t i = 0; i < x.size(); ++i) {
      const double magnitude = std::fabs(x[i]);
      if (std::fabs(double{f16[i]} - x[i]) > std::max(magnitude * 0x1p-11, 0x1p-25)) FAIL("f16: " << x[i]);
      if (std::fabs(double{bf16[i]} - x[i]) > std::max(magnitude * 0x1p-8, 0x1p-134)) FAIL("bf16: " << x[i]);
    }
  }
  // Ties go to even: 1 + 2^-8 lies between 1 and 1 + 2^-7, 1 + 3 * 2^-8 between 1 + 2^-7 and 1 + 2^-6.
  CHECK(round_trip(TensorType::kBF16, {0x1.01p0f, 0x1.03p0f, -0x1.01p0f}) ==
        std::vector<float>{1.0f, 0x1.04p0f, -1.0f});
}

TEST_CASE("quantize: zeros stay zeros", "[gguf][quantize]") {
  for (const Format& format : kFormats) {
    INFO(type_info(format.type)->name);
    CHECK(round_trip(format.type, std::vector<float>(kSize, 0.0f)) == std::vector<float>(kSize, 0.0f));
    CHECK(round_trip(format.type, std::vector<float>(kSize, -0.0f)) == std::vector<float>(kSize, 0.0f));
  }
}

// What a block can hold exactly comes back exactly: levels times a power of two, every code of the type among
// them.
TEST_CASE("quantize: values on the levels of a block come back as they were", "[gguf][quantize]") {
  const struct {
    TensorType type;
    int lo, hi;
  } kUniform[] = {{TensorType::kQ4_0, -8, 7}, {TensorType::kQ4_1, 0, 15},     {TensorType::kQ5_0, -16, 15},
                  {TensorType::kQ5_1, 0, 31}, {TensorType::kQ8_0, -127, 127}, {TensorType::kQ2_K, 0, 3},
                  {TensorType::kQ4_K, 0, 15}, {TensorType::kQ5_K, 0, 31}};
  for (const auto& format : kUniform) {
    INFO(type_info(format.type)->name);
    const int n_codes = format.hi - format.lo + 1;
    std::vector<float> x(kSize);
    for (size_t i = 0; i < kSize; ++i) {
      // Both ends in every 16 values, and all codes over the row.
      const int code = i % 16 == 0 ? 0 : i % 16 == 1 ? n_codes - 1 : static_cast<int>(i * 7 % n_codes);
      x[i] = 0x1p-6f * static_cast<float>(format.lo + code);
    }
    const std::vector<float> y = round_trip(format.type, x);
    // The integer scales make d of the K types a rounded 63rd: right but for that rounding.
    const bool is_super = type_info(format.type)->block_size == 256;
    for (size_t i = 0; i < kSize; ++i) {
      const float tolerance = is_super ? std::fabs(x[i]) * 0x1p-9f : 0.0f;
      if (std::fabs(x[i] - y[i]) > tolerance) FAIL("value " << i << ": " << x[i] << " became " << y[i]);
    }
  }
}

TEST_CASE("quantize: refuses what a type cannot hold", "[gguf][quantize]") {
  const float kInf = std::numeric_limits<float>::infinity();
  for (uint32_t number = 0; number < 64; ++number) {
    const auto type = static_cast<TensorType>(number);
    const TypeInfo* info = type_info(type);
    const std::string name = info ? info->name : "type " + std::to_string(number);
    INFO(name);
    std::vector<float> x(kSize, 0.5f);
    if (!info || !info->supported) {
      CHECK(error_of(type, x) == "quantize: " + name + " is not supported");
      continue;
    }
    for (const float bad : {kInf, -kInf, std::numeric_limits<float>::quiet_NaN()}) {
      x[700] = bad;
      CHECK(error_of(type, x) == "quantize: " + name + ": value 700 is not finite");
    }
    for (const float sign : {1.0f, -1.0f}) {
      x[700] = sign * std::numeric_limits<float>::max();
      const std::string error = error_of(type, x);
      const std::string place =
          "quantize: " + name + ": block " + std::to_string(700 / info->block_size) + ": ";
      CHECK(error.substr(0, place.size()) == (type == TensorType::kF32 ? "" : place));
    }
    x.assign(info->block_size + 1, 0.5f);
    if (info->block_size > 1) {
      CHECK(error_of(type, x) == "quantize: " + std::to_string(x.size()) + " values are no whole blocks of " +
                                     name + ", " + std::to_string(info->block_size) + " each");
    }
    CHECK(quantize(type, nullptr, 0).empty());
  }
}

}  // namespace
}  // namespace minfer::gguf
