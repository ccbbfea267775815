#include "cuda/kernels/swiglu.h"

#include <cmath>

#include "core/error.h"
#include "tests/cuda/gpu.h"
#include "tests/cuda/guarded.h"

namespace minfer::test {
namespace {

std::vector<half> run(const std::vector<float>& gate_up, int n_rows, int n, float scale) {
  const cu::DeviceBuffer<float> in(gate_up);
  const Guarded<half> out(static_cast<size_t>(n_rows) * static_cast<size_t>(n));
  const cu::Stream stream;
  cu::swiglu({.gate_up = in.data(), .out = out.data(), .n_rows = n_rows, .n = n, .scale = scale},
             stream.get());
  stream.synchronize("swiglu test");
  return out.read();
}

}  // namespace

TEST_CASE("swiglu: matches the f64 oracle", "[cuda][swiglu]") {
  MINFER_REQUIRE_GPU();
  for (const int n : {1, 255, 257, 18944}) {
    for (const int n_rows : {1, 8}) {
      INFO("n " << n << ", rows " << n_rows);
      const float scale = 1.0f / 64;
      const auto in = random_normal(size_t{2} * n_rows * n, 3, 5.0f);
      const auto got = run(in, n_rows, n, scale);
      int wrong = 0;
      for (int t = 0; t < n_rows; ++t) {
        for (int j = 0; j < n; ++j) {
          const double gate = in[size_t{2} * t * n + j], up = in[(size_t{2} * t + 1) * n + j];
          const double want = gate / (1 + std::exp(-gate)) * up * scale;
          // f16 rounding, and a few f32 ones; __expf is off by 2 + |x| units.
          const double tolerance = std::abs(want) * (0x1p-11 + 0x1p-23 * (8 + std::abs(gate))) + 0x1p-25;
          wrong += !(std::abs(to_float(got[size_t(t) * n + j]) - want) <= tolerance);
        }
      }
      CHECK(wrong == 0);
      CHECK(same_bits(got, run(in, n_rows, n, scale)));
    }
  }
}

TEST_CASE("swiglu: what is not finite, or leaves the f16 range, shows", "[cuda][swiglu]") {
  MINFER_REQUIRE_GPU();
  const auto got = run({NAN, 1, 1e4f, INFINITY, -200, 1, NAN, 1e4f, 1, 1}, 1, 5, 1.0f);
  CHECK(std::isnan(to_float(got[0])));
  CHECK(std::isnan(to_float(got[1])));
  CHECK(to_float(got[2]) == INFINITY);
  CHECK(to_float(got[3]) == INFINITY);
  CHECK(to_float(got[4]) == 0.0f);
}

TEST_CASE("swiglu: refuses what it cannot hold", "[cuda][swiglu]") {
  MINFER_REQUIRE_GPU();
  const cu::DeviceBuffer<float> in(16);
  const cu::DeviceBuffer<half> out(8);
  CHECK_THROWS_AS(cu::swiglu({.gate_up = in.data(), .out = out.data(), .n_rows = 0, .n = 8}, nullptr), Error);
  CHECK_THROWS_AS(cu::swiglu({.gate_up = in.data(), .out = nullptr, .n_rows = 1, .n = 8}, nullptr), Error);
}

}  // namespace minfer::test
