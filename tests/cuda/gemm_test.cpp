// gemm against f64. Sums in f32 of K products err by a few 2^-24 sqrt(K) of a row's RMS (tensor cores
// truncate when they align, which adds up to K / 16 roundings of one sign): 1e-4 at K = 18944. The bound of
// 1e-3 still shows one product missing in 18944 (1 / sqrt(18944) = 7e-3).
#include "cuda/kernels/gemm.h"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "core/error.h"
#include "cuda/kernels/gemm_tile.h"
#include "tests/cuda/gemm_operands.h"

namespace minfer::test {
namespace {

constexpr double kTolerance = 1e-3;

struct Size {
  int nt, od, id;
};

// The worst row_error of a whole product.
double worst_error(const std::vector<float>& got, const std::vector<double>& want, int n_cols) {
  double worst = 0;
  for (size_t at = 0; at < want.size(); at += n_cols) {
    worst =
        std::max(worst, row_error(std::span(got).subspan(at, n_cols), std::span(want).subspan(at, n_cols)));
  }
  return worst;
}

// `got`, nearer to `want` by what rounding to f16 may have moved it: half an ulp, 2^-11 of its size.
float without_rounding(float got, double want) {
  const double error = got - want, allowed = std::abs(want) / 2048;
  return static_cast<float>(want + std::copysign(std::max(0.0, std::abs(error) - allowed), error));
}

// Operands on the host and on the device, with A in f32 as well: its values are not those of f16, but round
// to them.
struct Problem {
  Size size;
  F16Matrix a, b;
  std::vector<float> a_f32;
  Guarded<half> a_device, b_device;
  Guarded<float> a_f32_device;
  std::vector<double> want;

  explicit Problem(Size s, float sigma = 1.0f)
      : size(s),
        a(s.nt, s.id, 11, sigma),
        b(s.od, s.id, 12),
        a_f32(nudged(a.values)),
        a_device(a.values),
        b_device(b.values),
        a_f32_device(a_f32),
        want(product(a, b)) {}

  cu::GemmArgs args(bool f32_a) const {
    cu::GemmArgs args;
    args.a = f32_a ? nullptr : a_device.data();
    args.a_f32 = f32_a ? a_f32_device.data() : nullptr;
    args.b = b_device.data();
    args.nt = size.nt, args.od = size.od, args.id = size.id;
    return args;
  }
  std::string describe() const {
    return fmt_size(size.nt) + "x" + fmt_size(size.od) + "x" + fmt_size(size.id);
  }

 private:
  static std::string fmt_size(int n) { return std::to_string(n); }
  static std::vector<float> nudged(const std::vector<half>& values) {
    std::vector<float> out(values.size());
    for (size_t i = 0; i < out.size(); ++i) out[i] = to_float(values[i]) * (1.0f + (i % 3) * 1e-4f);
    return out;
  }
};

// Every tile with A in f16 and, where there is one, in f32.
template <typename Body>
void for_every_kernel(const Body& body) {
  for (const cu::GemmTile& tile : cu::kGemmTiles) {
    body(tile, false);
    if (cu::gemm_takes_f32_a(tile)) body(tile, true);
  }
}

const Size kSmallSizes[] = {{1, 96, 64},     {7, 64, 576},    {65, 136, 96},
                            {129, 260, 200}, {130, 451, 328}, {64, 258, 8}};

}  // namespace

TEST_CASE("gemm: every tile matches the f64 oracle, tails included", "[cuda][gemm]") {
  MINFER_REQUIRE_GPU();
  double worst = 0;
  for (const Size& size : kSmallSizes) {
    const Problem problem(size);
    for_every_kernel([&](const cu::GemmTile& tile, bool f32_a) {
      Guarded<float> out(problem.want.size());
      cu::GemmArgs args = problem.args(f32_a);
      args.out_f32 = out.data();
      cu::gemm(args, tile, nullptr);
      const double error = worst_error(out.values(), problem.want, size.od);
      INFO(problem.describe() << " tile " << tile.describe() << (f32_a ? " f32" : " f16"));
      CHECK(error <= kTolerance);
      CHECK(out.guards_untouched());
      worst = std::max(worst, error);
    });
  }
  std::printf("gemm: worst error %.2e of a row's RMS\n", worst);
}

TEST_CASE("gemm: bias, residual and SwiGLU epilogues", "[cuda][gemm]") {
  MINFER_REQUIRE_GPU();
  for (const Size& size :
       {Size{1, 64, 64}, Size{77, 456, 96}, Size{130, 260, 200}, Size{67, 458, 328}, Size{66, 131, 72}}) {
    const Problem problem(size, 0.25f);
    const std::vector<float> bias = random_normal(size.od, 3), old = random_normal(problem.want.size(), 4);
    const Guarded<float> bias_device(bias);
    std::vector<double> biased = problem.want, added = problem.want, gated(problem.want.size() / 2);
    const float scale = 1.0f / 64;
    for (size_t i = 0; i < biased.size(); ++i)
      biased[i] += bias[i % size.od], added[i] = old[i] + added[i] * scale;
    for (size_t i = 0; i < gated.size(); ++i) {
      const double gate = problem.want[2 * i], up = problem.want[2 * i + 1];
      gated[i] = gate / (1 + std::exp(-gate)) * up * scale;
    }
    for_every_kernel([&](const cu::GemmTile& tile, bool f32_a) {
      INFO(problem.describe() << " tile " << tile.describe() << (f32_a ? " f32" : " f16"));
      cu::GemmArgs args = problem.args(f32_a);
      Guarded<float> out(biased.size()), sum(old);
      args.bias = bias_device.data(), args.out_f32 = out.data();
      cu::gemm(args, tile, nullptr);
      CHECK(worst_error(out.values(), biased, size.od) <= kTolerance);
      CHECK(out.guards_untouched());

      args.bias = nullptr, args.out_f32 = sum.data(), args.scale = scale,
      args.epilogue = cu::GemmEpilogue::kResidual;
      cu::gemm(args, tile, nullptr);
      CHECK(worst_error(sum.values(), added, size.od) <= kTolerance);
      CHECK(sum.guards_untouched());

      if (size.od % 2 != 0) return;
      Guarded<half> gate(gated.size());
      args.out_f32 = nullptr, args.out_f16 = gate.data(), args.epilogue = cu::GemmEpilogue::kSwiglu;
      cu::gemm(args, tile, nullptr);
      std::vector<float> got;
      for (const half v : gate.values()) got.push_back(without_rounding(to_float(v), gated[got.size()]));
      CHECK(worst_error(got, gated, size.od / 2) <= kTolerance);
      CHECK(gate.guards_untouched());
    });
  }
}

TEST_CASE("gemm: real shapes, sampled, with every tail", "[cuda][gemm]") {
  MINFER_REQUIRE_GPU();
  const Size sizes[] = {{2048, 4608, 3584}, {2047, 3584, 3584}, {300, 37888, 3584}, {2111, 3584, 18944},
                        {33, 1152, 896},    {513, 9728, 896},   {64, 896, 4864},    {129, 1536, 8960},
                        {5, 152064, 512},   {1, 151936, 896},   {200, 49152, 576},  {100, 960, 576},
                        {100, 576, 1536},   {17, 59136, 512},   {9, 512, 29568}};
  for (const Size& size : sizes) {
    const F16Matrix a(size.nt, size.id, 21), b(size.od, size.id, 22);
    const cu::DeviceBuffer<half> a_device{std::span(a.values)}, b_device{std::span(b.values)};
    Guarded<float> out(static_cast<size_t>(size.nt) * size.od);
    const cu::GemmTile tile = cu::gemm_tile(size.nt, size.od, size.id);
    cu::GemmArgs args;
    args.a = a_device.data(), args.b = b_device.data(), args.out_f32 = out.data();
    args.nt = size.nt, args.od = size.od, args.id = size.id;
    cu::gemm(args, nullptr);
    const std::vector<float> got = out.values();
    std::vector<int> columns;
    for (int o = 0; o < size.od; ++o) {
      if (o < 8 || o >= size.od - 72 || o % 1009 == 0) columns.push_back(o);
    }
    double worst = 0;
    for (int t = 0; t < size.nt; ++t) {
      if (t > 1 && t < size.nt - 2 && t % 251 != 0) continue;
      std::vector<float> row;
      std::vector<double> want;
      for (const int o : columns) {
        row.push_back(got[static_cast<size_t>(t) * size.od + o]);
        want.push_back(dot(a.row(t), b.row(o), size.id));
      }
      worst = std::max(worst, row_error(row, want));
    }
    INFO(size.nt << "x" << size.od << "x" << size.id << " tile " << tile.describe());
    CHECK(worst <= kTolerance);
    CHECK(out.guards_untouched());
    CHECK(std::none_of(got.begin(), got.end(), [](float v) { return std::isnan(v); }));
    std::printf("gemm: %d x %d x %d, tile %s: error %.1e\n", size.nt, size.od, size.id,
                tile.describe().c_str(), worst);
  }
}

TEST_CASE("gemm: sums past the f16 range are right, a non-finite row stays alone", "[cuda][gemm]") {
  MINFER_REQUIRE_GPU();
  const Size size = {70, 200, 520};
  F16Matrix a(size.nt, size.id, 31, 200.0f), b(size.od, size.id, 32, 200.0f);  // |c| of 1e6 and above
  const std::vector<double> want = product(a, b);
  REQUIRE(*std::max_element(want.begin(), want.end()) > 1e6);
  std::fill_n(a.row(3), size.id, half(__half_raw{0x7c00}));  // +Inf
  a.row(68)[519] = half(__half_raw{0x7e00});                 // NaN
  const Guarded<half> a_device(a.values), b_device(b.values);
  for_every_kernel([&](const cu::GemmTile& tile, bool f32_a) {
    if (f32_a) return;
    INFO("tile " << tile.describe());
    Guarded<float> out(want.size());
    cu::GemmArgs args;
    args.a = a_device.data(), args.b = b_device.data(), args.out_f32 = out.data();
    args.nt = size.nt, args.od = size.od, args.id = size.id;
    cu::gemm(args, tile, nullptr);
    const std::vector<float> got = out.values();
    for (int t = 0; t < size.nt; ++t) {
      const auto row = std::span(got).subspan(static_cast<size_t>(t) * size.od, size.od);
      if (t == 3 || t == 68) {
        CHECK(std::none_of(row.begin(), row.end(), [](float v) { return std::isfinite(v); }));
      } else {
        CHECK(row_error(row, std::span(want).subspan(static_cast<size_t>(t) * size.od, size.od)) <=
              kTolerance);
      }
    }
  });
}

TEST_CASE("gemm: a row is the same bits at every nt, tile and run", "[cuda][gemm]") {
  MINFER_REQUIRE_GPU();
  const Size size = {2048, 488, 1096};
  const F16Matrix a(size.nt, size.id, 41), b(size.od, size.id, 42);
  const Guarded<half> a_device(a.values), b_device(b.values);
  const auto run = [&](int nt, const cu::GemmTile& tile) {
    Guarded<float> out(static_cast<size_t>(nt) * size.od);
    cu::GemmArgs args;
    args.a = a_device.data(), args.b = b_device.data(), args.out_f32 = out.data();
    args.nt = nt, args.od = size.od, args.id = size.id;
    cu::gemm(args, tile, nullptr);
    return out.values();
  };
  const std::vector<float> whole = run(size.nt, cu::kGemmTiles[0]);
  for (const cu::GemmTile& tile : cu::kGemmTiles) {
    for (const int nt : {1, 7, 64, 2048, 2048}) {
      INFO("tile " << tile.describe() << " nt " << nt);
      const std::vector<float> got = run(nt, tile);
      CHECK(std::memcmp(got.data(), whole.data(), got.size() * sizeof(float)) == 0);
    }
  }
}

TEST_CASE("gemm: A converted in the kernel is A converted before", "[cuda][gemm]") {
  MINFER_REQUIRE_GPU();
  const Problem problem({150, 328, 456});
  for (const cu::GemmTile& tile : cu::kGemmTiles) {
    if (!cu::gemm_takes_f32_a(tile)) continue;
    std::vector<float> got[2];
    for (const bool f32_a : {false, true}) {
      Guarded<float> out(problem.want.size());
      cu::GemmArgs args = problem.args(f32_a);
      args.out_f32 = out.data();
      cu::gemm(args, tile, nullptr);
      got[f32_a] = out.values();
    }
    INFO("tile " << tile.describe());
    CHECK(std::memcmp(got[0].data(), got[1].data(), got[0].size() * sizeof(float)) == 0);
  }
}

TEST_CASE("gemm: the switches choose the tile, and what is not there is refused", "[cuda][gemm]") {
  MINFER_REQUIRE_GPU();
  for (const char* tm : {"64", "128", "256"}) {
    for (const char* ks : {"32", "64"}) {
      setenv("MINFER_GEMM_TM", tm, 1), setenv("MINFER_GEMM_KS", ks, 1);
      const std::string tile = cu::gemm_tile(2048, 3584, 3584).describe();
      CHECK(tile.substr(tile.find('x')) == std::string("x") + tm + "x" + ks);
    }
  }
  for (const char* bad : {"100", "0", "-64", "64k"}) {
    setenv("MINFER_GEMM_TM", bad, 1);
    CHECK_THROWS_AS(cu::gemm_tile(2048, 3584, 3584), Error);
  }
  unsetenv("MINFER_GEMM_TM"), unsetenv("MINFER_GEMM_KS");

  setenv("MINFER_SMEM_LIMIT", "101376", 1);  // a card of compute capability 8.6 or 8.9
  for (const Size& size : kSmallSizes) {
    CHECK(cu::gemm_geometry(cu::gemm_tile(size.nt, size.od, size.id), false).shared_bytes() <= 101376);
  }
  setenv("MINFER_SMEM_LIMIT", "1000", 1);
  try {
    cu::gemm_tile(1, 8, 8);
    FAIL("a tile in 1000 bytes");
  } catch (const Error& error) {
    CHECK(std::string(error.what()).find(" bytes of shared memory a block, 1000 available") !=
          std::string::npos);
  }
  unsetenv("MINFER_SMEM_LIMIT");

  setenv("MINFER_GEMM_AF32", "yes", 1);
  CHECK_THROWS_AS(cu::gemm_wants_f32_a(), Error);
  setenv("MINFER_GEMM_AF32", "1", 1);
  CHECK(cu::gemm_wants_f32_a());
  unsetenv("MINFER_GEMM_AF32");
  CHECK_FALSE(cu::gemm_wants_f32_a());
}

TEST_CASE("gemm: refuses what it cannot multiply", "[cuda][gemm]") {
  MINFER_REQUIRE_GPU();
  const Problem problem({4, 64, 64});
  Guarded<float> out(problem.want.size());
  cu::GemmArgs good = problem.args(false);
  good.out_f32 = out.data();
  const auto refused = [&](const auto& change, const cu::GemmTile& tile = {64, 64, 64}) {
    cu::GemmArgs args = good;
    change(args);
    CHECK_THROWS_AS(cu::gemm(args, tile, nullptr), Error);
  };
  refused([](cu::GemmArgs& a) { a.nt = 0; });
  refused([](cu::GemmArgs& a) { a.od = 0; });
  refused([](cu::GemmArgs& a) { a.id = 60; });
  refused([](cu::GemmArgs& a) { a.a += 4; });
  refused([](cu::GemmArgs& a) { a.b += 4; });
  refused([](cu::GemmArgs& a) { a.a = nullptr; });
  refused([](cu::GemmArgs& a) { a.a_f32 = reinterpret_cast<const float*>(a.a); });
  refused([](cu::GemmArgs& a) { a.out_f32 = nullptr; });
  refused([](cu::GemmArgs& a) { a.out_f32 += 1; });
  refused([](cu::GemmArgs& a) { a.epilogue = cu::GemmEpilogue::kSwiglu; });
  refused([](cu::GemmArgs&) {}, cu::GemmTile{64, 96, 64});
  refused([](cu::GemmArgs&) {}, cu::GemmTile{128, 224, 32});
  refused([&](cu::GemmArgs& a) { a.a = nullptr, a.a_f32 = problem.a_f32_device.data(); },
          cu::GemmTile{128, 224, 64});
  cu::gemm(good, {64, 64, 64}, nullptr);
  CHECK(worst_error(out.values(), problem.want, 64) <= kTolerance);
}

}  // namespace minfer::test
