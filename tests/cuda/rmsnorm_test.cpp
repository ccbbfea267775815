#include "cuda/kernels/rmsnorm.h"

#include <string>

#include "core/error.h"
#include "tests/cuda/gpu.h"
#include "tests/cuda/guarded.h"
#include "tests/cuda/timing.h"

namespace minfer::test {
namespace {

constexpr float kEps = 1e-6f;
constexpr int kLayer = 17;

// Of the f32 result, relative to each value: a thread's 16 squares and the 10 steps of two butterflies err by
// at most 26 * 2^-24 of the sum, the square root halves that, rsqrt adds 2 ulp and the products 2 half
// ulps: 1.2e-6.
constexpr double kF32Tolerance = 2e-6;
constexpr double kF16Rounding = 0x1p-11, kF16Smallest = 0x1p-25;

std::vector<float> widened(const std::vector<half>& values) {
  std::vector<float> out;
  for (const half v : values) out.push_back(to_float(v));
  return out;
}

struct Result {
  std::vector<half> f16;
  std::vector<float> f32;
  std::vector<int32_t> bad_layer;
};

Result run(const std::vector<float>& x, const std::vector<float>& weight,
           const std::vector<int32_t>& rows = {}, std::vector<int32_t> bad_layer = {}) {
  const int n = static_cast<int>(weight.size()), n_rows_in = static_cast<int>(x.size()) / n;
  if (bad_layer.empty()) bad_layer.assign(n_rows_in, -1);
  const size_t n_rows = rows.empty() ? n_rows_in : rows.size();
  const cu::DeviceBuffer<float> d_x(x), d_weight(weight);
  const cu::DeviceBuffer<int32_t> d_rows(rows), d_bad(bad_layer);
  Guarded<half> f16(n_rows * n);
  Guarded<float> f32(n_rows * n);
  const cu::Stream stream;
  cu::RmsnormArgs args{.x = d_x.data(),
                       .weight = d_weight.data(),
                       .rows = d_rows.data(),
                       .out = f16.data(),
                       .bad_layer = d_bad.data(),
                       .layer = kLayer,
                       .n_rows = static_cast<int>(n_rows),
                       .n = n,
                       .eps = kEps};
  cu::rmsnorm(args, stream.get());
  args.out = nullptr;
  args.out_f32 = f32.data();
  args.bad_layer = nullptr;
  cu::rmsnorm(args, stream.get());
  stream.synchronize("rmsnorm test");
  d_bad.download(bad_layer);
  return {f16.read(), f32.read(), bad_layer};
}

std::vector<double> oracle(std::span<const float> x, std::span<const float> weight) {
  double sum = 0;
  for (const float v : x) sum += double{v} * v;
  const double scale = 1 / std::sqrt(sum / static_cast<double>(x.size()) + double{kEps});
  std::vector<double> out;
  for (size_t i = 0; i < x.size(); ++i) out.push_back(x[i] * scale * weight[i]);
  return out;
}

// How many values of the two results stand off the oracle by more than rounding explains.
int n_wrong(const Result& got, const std::vector<float>& x, const std::vector<float>& weight) {
  const size_t n = weight.size();
  int wrong = 0;
  for (size_t r = 0; r < x.size() / n; ++r) {
    const auto want = oracle(std::span(x).subspan(r * n, n), weight);
    for (size_t i = 0; i < n; ++i) {
      const double size = std::abs(want[i]);
      const double f32 = std::abs(got.f32[r * n + i] - want[i]);
      const double f16 = std::abs(to_float(got.f16[r * n + i]) - want[i]);
      wrong += !(f32 <= kF32Tolerance * size);
      wrong += !(f16 <= (kF32Tolerance + kF16Rounding) * size + kF16Smallest);
    }
  }
  return wrong;
}

}  // namespace

TEST_CASE("rmsnorm: matches the f64 oracle", "[cuda][rmsnorm]") {
  MINFER_REQUIRE_GPU();
  for (const int n : {4, 64, 68, 576, 896, 1000, 3584, 4100, 5120, 8192, 16384}) {
    for (const int n_rows : {1, 5}) {
      INFO("n " << n << ", " << n_rows << " rows");
      const auto x = random_normal(static_cast<size_t>(n) * n_rows, n + n_rows, 3.0f);
      const auto weight = random_normal(n, 7 * n, 0.5f);
      const Result got = run(x, weight);
      CHECK(n_wrong(got, x, weight) == 0);
      CHECK(got.bad_layer == std::vector<int32_t>(n_rows, -1));
    }
  }
}

TEST_CASE("rmsnorm: large, small and zero rows are right too", "[cuda][rmsnorm]") {
  MINFER_REQUIRE_GPU();
  const int n = 896;
  for (const float size : {0.0f, 1e-30f, 1e-12f, 1e-3f, 1e5f, 1e17f}) {  // 896 * (5e17)^2 still fits f32
    INFO("values of " << size);
    auto x = random_normal(n, 11, 1.0f);
    for (float& v : x) v *= size;
    x[13] *= 50;  // an outlier, as real models have
    const auto weight = random_normal(n, 12, 1.0f);
    const Result got = run(x, weight);
    CHECK(n_wrong(got, x, weight) == 0);
    CHECK(got.bad_layer[0] == -1);
  }
}

TEST_CASE("rmsnorm: gathers rows", "[cuda][rmsnorm]") {
  MINFER_REQUIRE_GPU();
  const int n = 576;
  const auto x = random_normal(6 * n, 21);
  const auto weight = random_normal(n, 22);
  const Result all = run(x, weight);
  const std::vector<int32_t> rows = {5, 0, 5, 2};
  const Result some = run(x, weight, rows);
  for (size_t r = 0; r < rows.size(); ++r) {
    CHECK(same_bits(std::span<const half>(some.f16).subspan(r * n, n),
                    std::span<const half>(all.f16).subspan(rows[r] * n, n)));
  }
}

TEST_CASE("rmsnorm: a row's bits depend on nothing else, at every run", "[cuda][rmsnorm]") {
  MINFER_REQUIRE_GPU();
  for (const int n : {896, 3584, 5120}) {
    const auto x = random_normal(9 * n, n);
    const auto weight = random_normal(n, n + 1);
    const Result first = run(x, weight);
    for (int repeat = 0; repeat < 20; ++repeat) {
      const Result again = run(x, weight);
      REQUIRE(same_bits(again.f16, first.f16));
      REQUIRE(same_bits(again.f32, first.f32));
    }
    for (const int r : {0, 4, 8}) {
      const Result alone = run({x.begin() + r * n, x.begin() + (r + 1) * n}, weight);
      CHECK(
          same_bits(std::span<const float>(alone.f32), std::span<const float>(first.f32).subspan(r * n, n)));
      CHECK(same_bits(std::span<const half>(alone.f16), std::span<const half>(first.f16).subspan(r * n, n)));
    }
  }
}

TEST_CASE("rmsnorm: a row that is not finite is NaN throughout and names the first layer",
          "[cuda][rmsnorm]") {
  MINFER_REQUIRE_GPU();
  const int n = 1000;
  auto x = random_normal(6 * n, 31);
  x[1 * n + 999] = NAN;
  x[2 * n + 500] = INFINITY;
  x[3 * n + 0] = -INFINITY;
  x[4 * n + 7] = 1e30f;  // its square is past f32
  const auto weight = random_normal(n, 32);
  const Result got = run(x, weight, {}, {-1, -1, 3, -1, -1, -1});
  CHECK(got.bad_layer == std::vector<int32_t>{-1, kLayer, 3, kLayer, kLayer, -1});
  for (int r = 0; r < 6; ++r) {
    int n_nan = 0;
    for (int i = 0; i < n; ++i) {
      n_nan += std::isnan(got.f32[r * n + i]) && std::isnan(to_float(got.f16[r * n + i]));
    }
    INFO("row " << r);
    CHECK(n_nan == (r >= 1 && r <= 4 ? n : 0));
  }
  const Result gathered = run(x, weight, {4, 0});
  CHECK(gathered.bad_layer == std::vector<int32_t>{-1, -1, -1, -1, kLayer, -1});
}

TEST_CASE("rmsnorm: what leaves the f16 range becomes infinite", "[cuda][rmsnorm]") {
  MINFER_REQUIRE_GPU();
  const std::vector<float> x = {1, -1, 1, 1}, weight = {65519, 65536, 1, -1e20f};
  const auto got = widened(run(x, weight).f16);
  CHECK(got[0] == 65504);
  CHECK(got[1] == -INFINITY);
  CHECK(got[3] == -INFINITY);
}

TEST_CASE("rmsnorm: refuses what its vectors cannot hold", "[cuda][rmsnorm]") {
  MINFER_REQUIRE_GPU();
  const cu::DeviceBuffer<float> x(32768), weight(32768);
  const cu::DeviceBuffer<half> out(32768);
  const cu::RmsnormArgs good{.x = x.data(), .weight = weight.data(), .out = out.data(), .n_rows = 1, .n = 64};
  const auto refused = [&good](auto change) {
    cu::RmsnormArgs args = good;
    change(args);
    CHECK_THROWS_AS(cu::rmsnorm(args, nullptr), Error);
  };
  refused([](auto& a) { a.n = 66; });
  refused([](auto& a) { a.n = 16388; });
  refused([](auto& a) { a.n_rows = 0; });
  refused([](auto& a) { a.x += 1; });
  refused([](auto& a) { a.out += 2; });
  refused([](auto& a) { a.out = nullptr; });
  refused([](auto& a) { a.weight = nullptr; });
}

TEST_CASE("rmsnorm: timing", "[.bench][cuda][rmsnorm]") {
  MINFER_REQUIRE_GPU();
  for (const auto& [n_rows, n] : {std::pair{1, 3584},
                                  {8, 3584},
                                  {64, 3584},
                                  {512, 3584},
                                  {2048, 3584},
                                  {2048, 5120},
                                  {2048, 896},
                                  {2048, 8192}}) {
    const size_t row_bytes = 6 * static_cast<size_t>(n);
    const int n_sets = static_cast<int>(std::clamp<size_t>((200u << 20) / (n_rows * row_bytes), 2, 64));
    const size_t set = static_cast<size_t>(n_rows) * n;
    cu::DeviceBuffer<float> x(set * n_sets), weight(random_normal(n, 1));
    const cu::DeviceBuffer<half> out(set * n_sets);
    const auto values = random_normal(set, 2);
    for (int s = 0; s < n_sets; ++s) {
      cu::check(cudaMemcpy(x.data() + s * set, values.data(), set * 4, cudaMemcpyHostToDevice), "upload");
    }
    const Timing t =
        time_us(std::max(64, 4 * n_sets), [&, rows = n_rows, cols = n](int i, cudaStream_t stream) {
          const size_t at = static_cast<size_t>(i % n_sets) * set;
          cu::rmsnorm({.x = x.data() + at,
                       .weight = weight.data(),
                       .out = out.data() + at,
                       .n_rows = rows,
                       .n = cols,
                       .eps = kEps},
                      stream);
        });
    print_bandwidth("rmsnorm " + std::to_string(n_rows) + " x " + std::to_string(n), t,
                    static_cast<double>(n_rows) * static_cast<double>(row_bytes));
  }
}

}  // namespace minfer::test
