#include "cuda/kernels/convert.h"

#include <string>

#include "core/error.h"
#include "tests/cuda/gpu.h"
#include "tests/cuda/guarded.h"
#include "tests/cuda/timing.h"

namespace minfer::test {
namespace {

std::vector<half> run(const std::vector<float>& in) {
  const cu::DeviceBuffer<float> d_in(in);
  const Guarded<half> out(in.size());
  const cu::Stream stream;
  cu::convert({.in = d_in.data(), .out = out.data(), .n = static_cast<int64_t>(in.size())}, stream.get());
  stream.synchronize("convert test");
  return out.read();
}

}  // namespace

TEST_CASE("convert: every value is the nearest f16, at every length", "[cuda][convert]") {
  MINFER_REQUIRE_GPU();
  for (const int n : {1, 2, 3, 4, 5, 7, 1023, 4095, 4096, 4097, 4099, 5 * 3584, 40001}) {
    INFO("n " << n);
    const auto in = random_normal(n, n, 100.0f);
    CHECK(same_bits(run(in), to_half(in)));
  }
}

TEST_CASE("convert: ties, subnormals, and what f16 cannot hold", "[cuda][convert]") {
  MINFER_REQUIRE_GPU();
  const std::vector<float> in = {0.0f,       -0.0f,    1 + 0x1p-11f, 1 + 0x1.8p-10f, 65504.0f, 65519.9f,
                                 65520.0f,   -1e5f,    1e38f,        0x1p-14f,       0x1p-24f, 0x1p-25f,
                                 0x1.8p-25f, 0x1p-26f, -0x1p-20f,    INFINITY,       -INFINITY};
  const auto got = run(in);
  CHECK(same_bits(got, to_half(in)));
  CHECK(to_float(got[2]) == 1.0f);  // a tie goes to the even one
  CHECK(to_float(got[3]) == 1 + 0x1p-9f);
  CHECK(to_float(got[5]) == 65504.0f);
  CHECK(to_float(got[6]) == INFINITY);  // not clamped
  CHECK(to_float(got[7]) == -INFINITY);
  CHECK(std::isnan(to_float(run({1.0f, NAN, 2.0f})[1])));
}

TEST_CASE("convert: refuses what its vectors cannot hold", "[cuda][convert]") {
  MINFER_REQUIRE_GPU();
  const cu::DeviceBuffer<float> in(64);
  const cu::DeviceBuffer<half> out(64);
  CHECK_THROWS_AS(cu::convert({.in = in.data() + 1, .out = out.data(), .n = 8}, nullptr), Error);
  CHECK_THROWS_AS(cu::convert({.in = in.data(), .out = out.data() + 1, .n = 8}, nullptr), Error);
  CHECK_THROWS_AS(cu::convert({.in = in.data(), .out = out.data(), .n = 0}, nullptr), Error);
}

TEST_CASE("convert: timing", "[.bench][cuda][convert]") {
  MINFER_REQUIRE_GPU();
  const int n_sets = 4;
  for (const int64_t n : {int64_t{3584}, int64_t{2048} * 3584}) {
    cu::DeviceBuffer<float> in(n * n_sets);
    const cu::DeviceBuffer<half> out(n * n_sets);
    const auto values = random_normal(n, 2);
    for (int s = 0; s < n_sets; ++s) {
      cu::check(cudaMemcpy(in.data() + s * n, values.data(), n * 4, cudaMemcpyHostToDevice), "upload");
    }
    const Timing t = time_us(64, [&](int i, cudaStream_t stream) {
      const int64_t at = i % n_sets * n;
      cu::convert({.in = in.data() + at, .out = out.data() + at, .n = n}, stream);
    });
    print_bandwidth("convert " + std::to_string(n), t, 6.0 * static_cast<double>(n));
  }
}

}  // namespace minfer::test
