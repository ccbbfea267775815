#include "cuda/kernels/gemv.h"

#include <algorithm>
#include <limits>
#include <memory>

#include "core/error.h"
#include "cuda/runtime/stream.h"
#include "tests/cuda/blocks.h"
#include "tests/cuda/guarded.h"

namespace minfer::test {
namespace {

using cu::GemvArgs;
using cu::GemvEpilogue;

// Of the root mean square of a row of results. A sum of n_cols products runs in f32 over at most n_cols / 32
// steps a lane, each rounded to 2^-24 of the running sum (2^-22 where tensor cores truncate); such errors add
// like a random walk, and the running sum is at most a few times the result's root mean square (weights with
// minimums cancel): sqrt(18944 / 32) * 2^-22 * 3 = 1.7e-5. Typical is a tenth of that.
constexpr double kTolerance = 2e-5;
constexpr int kMax = cu::kGemvMaxRows;

struct Activations {
  std::vector<half> host;
  cu::DeviceBuffer<half> device;
  int n_cols;
  Activations(int n_columns, uint32_t seed, float sigma = 1.0f)
      : host(to_half(random_normal(static_cast<size_t>(kMax) * static_cast<size_t>(n_columns), seed, sigma))),
        device(std::span<const half>(host)),
        n_cols(n_columns) {}
};

// y[t][i] for the rows listed, in f64.
std::vector<std::vector<double>> oracle(const TestMatrix& m, const Activations& x,
                                        const std::vector<int>& rows) {
  std::vector<std::vector<double>> y(kMax);
  const auto n = static_cast<size_t>(x.n_cols);
  std::vector<double> f(x.host.size());
  for (size_t i = 0; i < f.size(); ++i) f[i] = to_float(x.host[i]);
  for (const int row : rows) {
    const std::vector<float> w = decoded_row(m.matrix.type, m.blocks, row, x.n_cols);
    for (size_t t = 0; t < kMax; ++t) {
      double sum = 0;
      for (size_t k = 0; k < n; ++k) sum += w[k] * f[t * n + k];
      y[t].push_back(sum);
    }
  }
  return y;
}

// Every row of a small matrix; of a large one the first and last 40 and some between.
std::vector<int> sampled_rows(int n_rows) {
  std::vector<int> rows;
  for (int row = 0; row < n_rows; ++row) {
    if (n_rows <= 128 || row < 40 || row >= n_rows - 40 || row % (n_rows / 32) == 0) rows.push_back(row);
  }
  return rows;
}

// The worst row_error over tokens; also checks that every output was written, that a second run gives the
// same bits, and that fewer tokens give the same bits.
double check_store(const std::vector<const TestMatrix*>& matrices, const Activations& x,
                   const float* bias = nullptr) {
  GemvArgs args;
  args.n_matrices = static_cast<int>(matrices.size());
  size_t n_out = 0;
  for (size_t m = 0; m < matrices.size(); ++m) {
    args.w[m] = matrices[m]->matrix;
    n_out += static_cast<size_t>(args.w[m].n_rows);
  }
  cu::DeviceBuffer<float> device_bias;
  if (bias != nullptr) device_bias = cu::DeviceBuffer<float>(std::span<const float>(bias, n_out));
  args.bias = device_bias.data();
  args.x = x.device.data();
  std::vector<std::vector<float>> results;
  for (int n_tokens = kMax; n_tokens >= 1; --n_tokens) {
    Guarded<float> out(n_out * static_cast<size_t>(n_tokens));
    args.n_tokens = n_tokens, args.out_f32 = out.data();
    cu::gemv(args, nullptr);
    results.push_back(out.read());
    const std::vector<float>& got = results.back();
    CHECK(std::none_of(got.begin(), got.end(), [](float v) { return std::isnan(v); }));
    CHECK(std::equal(got.begin(), got.end(), results[0].begin()));
  }
  Guarded<float> again(n_out * kMax);
  args.n_tokens = kMax, args.out_f32 = again.data();
  cu::gemv(args, nullptr);
  CHECK(same_bits(again.read(), results[0]));

  double worst = 0;
  size_t first = 0;
  for (const TestMatrix* m : matrices) {
    const std::vector<int> rows = sampled_rows(m->matrix.n_rows);
    std::vector<std::vector<double>> want = oracle(*m, x, rows);
    double squares = 0;  // over all sampled results: one row of a one-row matrix may well be near 0
    for (const auto& y : want) {
      for (const double v : y) squares += v * v;
    }
    const double rms = std::sqrt(squares / static_cast<double>(rows.size() * kMax));
    for (size_t t = 0; t < kMax; ++t) {
      for (size_t i = 0; i < rows.size(); ++i) {
        const size_t at = first + static_cast<size_t>(rows[i]);
        const double truth = want[t][i] + (bias != nullptr ? static_cast<double>(bias[at]) : 0.0);
        worst = std::max(worst, std::abs(results[0][t * n_out + at] - truth) / rms);
      }
    }
    first += static_cast<size_t>(m->matrix.n_rows);
  }
  return worst;
}

TEST_CASE("gemv: every type matches the f64 oracle, the same bits for 1 to 8 rows", "[cuda][gemv]") {
  MINFER_REQUIRE_GPU();
  for (const TensorType type : kBlockTypes) {
    double worst = 0;
    for (const auto& [n_rows, n_cols] : {std::pair{1, 256},
                                         {7, 512},
                                         {63, 256},
                                         {16, 1536},
                                         {17, 3584},
                                         {40, 4352},
                                         {35, 18944},
                                         {9, 32},
                                         {5, 64},
                                         {33, 448},
                                         {63, 576},
                                         {20, 896},
                                         {18, 4864}}) {
      if (n_cols % static_cast<int>(gguf::type_info(type)->block_size) != 0) continue;
      INFO(gguf::type_info(type)->name << " " << n_rows << " x " << n_cols);
      const TestMatrix m(type, n_rows, n_cols, 31);
      const double error = check_store({&m}, Activations(n_cols, 32));
      CHECK(error < kTolerance);
      worst = std::max(worst, error);
    }
    std::printf("gemv %-7s worst error / rms %.2g\n", gguf::type_info(type)->name, worst);
  }
}

TEST_CASE("gemv: the shapes of a real model", "[cuda][gemv]") {
  MINFER_REQUIRE_GPU();
  for (const TensorType type : {TensorType::kQ4_K, TensorType::kQ6_K}) {
    for (const auto& [n_rows, n_cols] :
         {std::pair{3584, 3584}, {3584, 18944}, {18944, 3584}, {32003, 2048}}) {
      INFO(gguf::type_info(type)->name << " " << n_rows << " x " << n_cols);
      const TestMatrix m(type, n_rows, n_cols, 33);
      CHECK(check_store({&m}, Activations(n_cols, 34)) < kTolerance);
    }
  }
}

TEST_CASE("gemv: small and large activations keep their accuracy", "[cuda][gemv]") {
  MINFER_REQUIRE_GPU();
  for (const TensorType type : {TensorType::kQ4_K, TensorType::kQ6_K, TensorType::kQ5_0}) {
    for (const float sigma : {0x1p-14f, 0x1p13f}) {  // subnormals; up to f16's end
      INFO(gguf::type_info(type)->name << " sigma " << sigma);
      const TestMatrix m(type, 48, 2048, 35);
      CHECK(check_store({&m}, Activations(2048, 36, sigma)) < kTolerance);
    }
  }
}

TEST_CASE("gemv: q, k and v of different types in one call, with a bias", "[cuda][gemv]") {
  MINFER_REQUIRE_GPU();
  using enum TensorType;
  const std::vector<float> bias = random_normal(3584 + 512 + 512, 37);
  const Activations x(3584, 38);
  for (const auto& [q, k, v] : {std::tuple{kQ4_K, kQ4_K, kQ6_K},
                                {kQ4_K, kQ4_K, kQ4_K},
                                {kQ6_K, kQ4_K, kQ6_K},
                                {kQ5_0, kQ8_0, kF16},
                                {kQ5_0, kQ5_0, kQ8_0},
                                {kQ8_0, kQ8_0, kQ8_0},
                                {kQ4_K, kQ5_K, kQ6_K}}) {
    const TestMatrix mq(q, 3584, 3584, 39), mk(k, 512, 3584, 40), mv(v, 500, 3584, 41);
    INFO(gguf::type_info(q)->name << " " << gguf::type_info(k)->name << " " << gguf::type_info(v)->name);
    CHECK(check_store({&mq, &mk, &mv}, x, bias.data()) < kTolerance);
    CHECK(check_store({&mk, &mv}, x) < kTolerance);
  }
}

TEST_CASE("gemv: the shapes of small models", "[cuda][gemv]") {
  MINFER_REQUIRE_GPU();
  for (const TensorType type : {TensorType::kQ4_0, TensorType::kQ4_1, TensorType::kQ5_0, TensorType::kQ8_0}) {
    for (const auto& [n_rows, n_cols] : {std::pair{4864, 896}, {896, 4864}, {49152, 576}, {2048, 8192}}) {
      INFO(gguf::type_info(type)->name << " " << n_rows << " x " << n_cols);
      const TestMatrix m(type, n_rows, n_cols, 64);
      CHECK(check_store({&m}, Activations(n_cols, 65)) < kTolerance);
    }
  }
}

// A launch's x is what the launch ahead wrote, and other data in every round; its output what that one read,
// or added to.
TEST_CASE("gemv: an early start changes nothing", "[cuda][gemv]") {
  MINFER_REQUIRE_GPU();
  for (const TensorType type : {TensorType::kQ4_K, TensorType::kQ6_K, TensorType::kQ8_0}) {
    const TestMatrix gate(type, 1536, 1536, 66), up(type, 1536, 1536, 67), down(type, 4096, 1536, 68);
    const Activations start(1536, 69);
    const cu::Stream stream;
    for (const int n_tokens : {1, 3}) {
      std::vector<float> want;
      for (const bool early : {false, true}) {
        cu::DeviceBuffer<half> act(size_t{1536} * 3);
        Guarded<float> out(size_t{4096} * static_cast<size_t>(n_tokens));
        cu::check(cudaDeviceSynchronize(), "poison");
        for (int i = 0; i < 40; ++i) {
          GemvArgs args;
          args.early = early, args.n_tokens = n_tokens;
          args.w[0] = gate.matrix, args.w[1] = up.matrix, args.n_matrices = 2;
          args.x = start.device.data() + 1536 * (i % (kMax - 2)), args.out_f16 = act.data();
          args.epilogue = GemvEpilogue::kSwiglu, args.scale = 0.5f;
          cu::gemv(args, stream.get());
          args.w[0] = down.matrix, args.n_matrices = 1, args.scale = 1.0f;
          args.x = act.data(), args.out_f32 = out.data();
          args.epilogue = i == 0 ? GemvEpilogue::kStore : GemvEpilogue::kResidual;
          cu::gemv(args, stream.get());
        }
        stream.synchronize("gemv");
        if (!early) want = out.read();
        CHECK(same_bits(out.read(), want));
      }
      CHECK(std::any_of(want.begin(), want.end(), [](float v) { return v != 0.0f; }));
    }
  }
}

// What stands beside a row must not change it: alone, and as the last of three.
TEST_CASE("gemv: a row's bits do not depend on its neighbours", "[cuda][gemv]") {
  MINFER_REQUIRE_GPU();
  const TestMatrix q(TensorType::kQ4_K, 2048, 2048, 42), k(TensorType::kQ6_K, 64, 2048, 43),
      v(TensorType::kQ4_K, 48, 2048, 44);
  const Activations x(2048, 45);
  for (const int n_tokens : {1, 5}) {
    Guarded<float> alone(48 * 8), beside((2048 + 64 + 48) * 8);
    GemvArgs args;
    args.x = x.device.data(), args.n_tokens = n_tokens;
    args.w[0] = v.matrix, args.out_f32 = alone.data();
    cu::gemv(args, nullptr);
    args.w[0] = q.matrix, args.w[1] = k.matrix, args.w[2] = v.matrix, args.n_matrices = 3,
    args.out_f32 = beside.data();
    cu::gemv(args, nullptr);
    const std::vector<float> a = alone.read(), b = beside.read();
    for (size_t t = 0; t < static_cast<size_t>(n_tokens); ++t) {
      CHECK(std::equal(a.begin() + static_cast<ptrdiff_t>(48 * t),
                       a.begin() + static_cast<ptrdiff_t>(48 * (t + 1)),
                       b.begin() + static_cast<ptrdiff_t>(2160 * t + 2112)));
    }
  }
}

TEST_CASE("gemv: residual adds scaled products to what is there", "[cuda][gemv]") {
  MINFER_REQUIRE_GPU();
  for (const TensorType type : {TensorType::kQ4_K, TensorType::kQ6_K, TensorType::kQ4_1}) {
    const TestMatrix m(type, 80, 18944, 46);
    const Activations x(18944, 47);
    const auto want = oracle(m, x, sampled_rows(80));
    const std::vector<float> before = random_normal(80 * kMax, 48);
    for (const int n_tokens : {1, 3, 8}) {
      cu::DeviceBuffer<float> out{std::span<const float>(before)};
      GemvArgs args;
      args.w[0] = m.matrix, args.x = x.device.data(), args.n_tokens = n_tokens;
      args.epilogue = GemvEpilogue::kResidual, args.out_f32 = out.data(), args.scale = 64.0f;
      cu::gemv(args, nullptr);
      std::vector<float> got(out.size());
      out.download(got);
      for (size_t t = 0; t < kMax; ++t) {
        std::vector<double> truth(80);
        for (size_t i = 0; i < 80; ++i) {
          truth[i] = before[t * 80 + i] + (t < static_cast<size_t>(n_tokens) ? 64 * want[t][i] : 0.0);
        }
        CHECK(row_error(std::span<const float>(got).subspan(t * 80, 80), truth) < kTolerance);
      }
    }
  }
}

TEST_CASE("gemv: SwiGLU over gate and up", "[cuda][gemv]") {
  MINFER_REQUIRE_GPU();
  for (const auto& [type, n_rows] :
       {std::pair{TensorType::kQ4_K, 18944}, {TensorType::kQ6_K, 1001}, {TensorType::kQ8_0, 250}}) {
    const int n_cols = n_rows == 18944 ? 3584 : 1536;
    const TestMatrix gate(type, n_rows, n_cols, 49), up(type, n_rows, n_cols, 50);
    const Activations x(n_cols, 51);
    const std::vector<int> rows = sampled_rows(n_rows);
    const auto g = oracle(gate, x, rows), u = oracle(up, x, rows);
    const auto n_out = static_cast<size_t>(n_rows);
    std::vector<half> eight;
    for (int n_tokens = kMax; n_tokens >= 1; --n_tokens) {
      Guarded<half> out(n_out * static_cast<size_t>(n_tokens));
      GemvArgs args;
      args.w[0] = gate.matrix, args.w[1] = up.matrix, args.n_matrices = 2;
      args.x = x.device.data(), args.n_tokens = n_tokens;
      args.epilogue = GemvEpilogue::kSwiglu, args.out_f16 = out.data(), args.scale = 0x1p-6f;
      cu::gemv(args, nullptr);
      const std::vector<half> got = out.read();
      if (n_tokens == kMax) eight = got;
      CHECK(same_bits(std::span<const half>(got), std::span<const half>(eight).first(got.size())));
    }
    for (size_t t = 0; t < kMax; ++t) {
      double squares = 0, worst = 0;
      for (size_t i = 0; i < rows.size(); ++i) {
        const double want = g[t][i] / (1 + std::exp(-g[t][i])) * u[t][i] / 64;
        squares += want * want;
        const double got = to_float(eight[t * n_out + static_cast<size_t>(rows[i])]);
        // f16's rounding is half of 2^-10 of the value (2^-25 below f16's normal range); the rest is the
        // products' error.
        worst = std::max(worst, std::abs(got - want) - std::abs(want) * 0x1.02p-11 - 0x1p-25);
      }
      CHECK(worst < 4 * kTolerance * std::sqrt(squares / static_cast<double>(rows.size())));
    }
  }
}

TEST_CASE("gemv: a value that is not finite reaches its own row of results and no other", "[cuda][gemv]") {
  MINFER_REQUIRE_GPU();
  for (const TensorType type : {TensorType::kQ4_K, TensorType::kQ6_K, TensorType::kQ5_1, TensorType::kQ5_0}) {
    const TestMatrix m(type, 48, 1024, 52);
    for (const float bad :
         {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
      std::vector<half> x = Activations(1024, 53).host;
      x[1024 + 700] = to_half(std::vector<float>{bad})[0];
      const cu::DeviceBuffer<half> device{std::span<const half>(x)};
      Guarded<float> out(48 * 3);
      GemvArgs args;
      args.w[0] = m.matrix, args.x = device.data(), args.n_tokens = 3, args.out_f32 = out.data();
      cu::gemv(args, nullptr);
      const std::vector<float> got = out.read();
      for (size_t i = 0; i < 48; ++i) {
        CHECK(std::isfinite(got[i]));
        CHECK(!std::isfinite(got[48 + i]));
        CHECK(std::isfinite(got[96 + i]));
      }
    }
  }
}

TEST_CASE("gemv: twenty runs give the same bits", "[cuda][gemv]") {
  MINFER_REQUIRE_GPU();
  const TestMatrix q4(TensorType::kQ4_K, 4096, 3584, 54), q6(TensorType::kQ6_K, 1024, 3584, 55);
  const Activations x(3584, 56);
  for (const int n_tokens : {1, 8}) {
    std::vector<float> first;
    for (int run = 0; run < 20; ++run) {
      Guarded<float> out(5120 * static_cast<size_t>(n_tokens));
      GemvArgs args;
      args.w[0] = q4.matrix, args.w[1] = q6.matrix, args.n_matrices = 2;
      args.x = x.device.data(), args.n_tokens = n_tokens, args.out_f32 = out.data();
      cu::gemv(args, nullptr);
      const std::vector<float> got = out.read();
      if (run == 0) first = got;
      CHECK(same_bits(got, first));
    }
  }
}

TEST_CASE("gemv: rejects what it cannot do", "[cuda][gemv]") {
  MINFER_REQUIRE_GPU();
  const TestMatrix m(TensorType::kQ4_K, 16, 256, 57);
  const Activations x(256, 58);
  Guarded<float> out(16 * kMax);
  GemvArgs good;
  good.w[0] = m.matrix, good.x = x.device.data(), good.n_tokens = 1, good.out_f32 = out.data();
  GemvArgs args = good;
  args.n_tokens = 9;
  CHECK_THROWS_AS(cu::gemv(args, nullptr), Error);
  args = good, args.x = x.device.data() + 1;
  CHECK_THROWS_AS(cu::gemv(args, nullptr), Error);
  args = good, args.epilogue = GemvEpilogue::kSwiglu;
  CHECK_THROWS_AS(cu::gemv(args, nullptr), Error);
  args = good, args.out_f32 = nullptr;
  CHECK_THROWS_AS(cu::gemv(args, nullptr), Error);
  args = good, args.w[0].n_cols = 128;
  CHECK_THROWS_AS(cu::gemv(args, nullptr), Error);
}

}  // namespace
}  // namespace minfer::test
