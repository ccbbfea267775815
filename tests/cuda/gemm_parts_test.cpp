// gemm with K in parts against f64, within the tolerance of gemm_test.cpp.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>

#include "core/error.h"
#include "cuda/kernels/gemm.h"
#include "cuda/kernels/gemm_tile.h"
#include "tests/cuda/gemm_operands.h"

namespace minfer::test {
namespace {

constexpr double kTolerance = 1e-3;

// A product of few rows, with what the parts need.
class Parts {
 public:
  Parts(int nt, int od, int id, float sigma = 1.0f)
      : a_(nt, id, 51, sigma), b_(od, id, 52), a_device_(a_.values), b_device_(b_.values) {
    arrivals_.fill_bytes(0);
  }

  F16Matrix& a() { return a_; }
  void upload_a() {
    cu::check(
        cudaMemcpy(a_device_.data(), a_.values.data(), a_.values.size() * sizeof(half), cudaMemcpyDefault),
        "upload");
  }
  std::vector<double> want() const { return product(a_, b_); }

  cu::GemmArgs args(int nt, int n_parts) {
    cu::GemmArgs args;
    args.a = a_device_.data(), args.b = b_device_.data();
    args.nt = nt, args.od = b_.n_rows, args.id = b_.n_cols;
    args.split = {n_parts, partials_.data(), arrivals_.data()};
    return args;
  }
  void run(const cu::GemmArgs& args) {
    partials_.fill_bytes(0xff);
    cu::gemm(args, nullptr);
    std::vector<uint32_t> arrivals(arrivals_.size());
    arrivals_.download(arrivals);
    CHECK(std::count(arrivals.begin(), arrivals.end(), 0u) == std::ssize(arrivals));
  }
  std::vector<float> store(int nt, int n_parts, const float* bias = nullptr) {
    Guarded<float> out(static_cast<size_t>(nt) * static_cast<size_t>(b_.n_rows));
    cu::GemmArgs args = this->args(nt, n_parts);
    args.out_f32 = out.data(), args.bias = bias;
    run(args);
    CHECK(out.guards_untouched());
    return out.values();
  }

 private:
  F16Matrix a_, b_;
  Guarded<half> a_device_, b_device_;
  cu::DeviceBuffer<float> partials_{cu::kGemmPartials};
  cu::DeviceBuffer<uint32_t> arrivals_{size_t{cu::kMaxGemmPartBlocks}};
};

double worst_error(std::span<const float> got, std::span<const double> want, int n_cols) {
  const auto n = static_cast<size_t>(n_cols);
  double worst = 0;
  for (size_t at = 0; at < want.size(); at += n) {
    worst = std::max(worst, row_error(got.subspan(at, n), want.subspan(at, n)));
  }
  return worst;
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

// Numbers of parts that leave none empty.
std::vector<int> possible_parts(int id) {
  std::vector<int> parts;
  for (int n = 2; n <= cu::kMaxGemmParts; ++n) {
    if ((n - 1) * cu::gemm_part_length(id, n) < id) parts.push_back(n);
  }
  return parts;
}

}  // namespace

TEST_CASE("gemm_parts: every number of parts matches the f64 oracle, tails included", "[cuda][gemm]") {
  MINFER_REQUIRE_GPU();
  for (const auto& [nt, od, id] :
       {std::array{1, 64, 128}, {9, 96, 1096}, {64, 136, 2048}, {33, 451, 648}, {50, 260, 72}}) {
    Parts problem(nt, od, id);
    const std::vector<double> want = problem.want();
    for (const int n : possible_parts(id)) {
      INFO(nt << "x" << od << "x" << id << " in " << n << " parts");
      CHECK(worst_error(problem.store(nt, n), want, od) <= kTolerance);
    }
  }
}

TEST_CASE("gemm_parts: bias, residual and SwiGLU epilogues", "[cuda][gemm]") {
  MINFER_REQUIRE_GPU();
  constexpr int kRows = 29, kOut = 456, kIn = 1000, kParts = 3;
  constexpr float kScale = 1.0f / 64;
  Parts problem(kRows, kOut, kIn, 0.1f);
  const std::vector<double> want = problem.want();
  const std::vector<float> bias = random_normal(kOut, 3), old = random_normal(want.size(), 4);
  std::vector<double> biased = want, added = want, gated(want.size() / 2);
  for (size_t i = 0; i < want.size(); ++i) biased[i] += bias[i % kOut], added[i] = old[i] + want[i] * kScale;
  for (size_t i = 0; i < gated.size(); ++i) {
    gated[i] = want[2 * i] / (1 + std::exp(-want[2 * i])) * want[2 * i + 1] * kScale;
  }
  const Guarded<float> bias_device(bias);
  CHECK(worst_error(problem.store(kRows, kParts, bias_device.data()), biased, kOut) <= kTolerance);

  const Guarded<float> sum(old);
  cu::GemmArgs args = problem.args(kRows, kParts);
  args.epilogue = cu::GemmEpilogue::kResidual, args.out_f32 = sum.data(), args.scale = kScale;
  problem.run(args);
  CHECK(worst_error(sum.values(), added, kOut) <= kTolerance);
  CHECK(sum.guards_untouched());

  const Guarded<half> gate(gated.size());
  args.epilogue = cu::GemmEpilogue::kSwiglu, args.out_f32 = nullptr, args.out_f16 = gate.data();
  problem.run(args);
  std::vector<float> got;
  for (const half v : gate.values()) got.push_back(to_float(v));
  // Half an ulp of f16, 2^-11, of values up to some ten times a row's RMS.
  CHECK(worst_error(got, gated, kOut / 2) <= kTolerance + 10.0 / 2048);
  CHECK(gate.guards_untouched());
}

TEST_CASE("gemm_parts: a row is the same bits at every nt and run", "[cuda][gemm]") {
  MINFER_REQUIRE_GPU();
  Parts problem(64, 488, 3000);
  const std::vector<float> whole = problem.store(64, 4);
  for (int run = 0; run < 10; ++run) {
    for (const int nt : {1, 9, 17, 40, 64}) {
      CAPTURE(nt, run);
      const std::vector<float> some = problem.store(nt, 4);
      CHECK(same_bits(some, std::span(whole).first(some.size())));
    }
  }
}

TEST_CASE("gemm_parts: a non-finite row stays alone", "[cuda][gemm]") {
  MINFER_REQUIRE_GPU();
  Parts problem(20, 200, 1032);
  const std::vector<double> want = problem.want();
  problem.a().row(3)[1031] = half(__half_raw{0x7e00});  // NaN, in the last part
  std::fill_n(problem.a().row(17), 8, half(__half_raw{0x7c00}));
  problem.upload_a();
  const std::vector<float> got = problem.store(20, 4);
  for (size_t t = 0; t < 20; ++t) {
    const auto row = std::span(got).subspan(t * 200, 200);
    CAPTURE(t);
    if (t == 3 || t == 17) {
      CHECK(std::none_of(row.begin(), row.end(), [](float v) { return std::isfinite(v); }));
    } else {
      CHECK(row_error(row, std::span(want).subspan(t * 200, 200)) <= kTolerance);
    }
  }
}

TEST_CASE("gemm_parts: what pays has no empty part and room for its sums", "[cuda][gemm]") {
  MINFER_REQUIRE_GPU();
  for (const auto& [od, id] : {std::pair{4608, 3584},
                               {3584, 3584},
                               {37888, 3584},
                               {3584, 18944},
                               {152064, 3584},
                               {960, 576},
                               {576, 1536},
                               {6144, 4096},
                               {4096, 14336},
                               {1024, 64},
                               {64, 131072}}) {
    const int n = cu::gemm_parts(od, id);
    std::printf("gemm: %d x %d in %d parts\n", od, id, n);
    CAPTURE(od, id, n);
    CHECK(n >= 1);
    CHECK(n <= cu::kMaxGemmParts);
    if (n > 1) {
      CHECK((od + 63) / 64 * n <= cu::kMaxGemmPartBlocks);
      CHECK((n - 1) * cu::gemm_part_length(id, n) < id);
    }
  }
  CHECK(cu::gemm_parts(3584, 18944) > 1);
  ::setenv("MINFER_GEMM_TM", "128", 1);  // asks for a tile, so for K whole
  CHECK(cu::gemm_parts(3584, 18944) == 1);
  ::unsetenv("MINFER_GEMM_TM");
}

TEST_CASE("gemm_parts: refuses what it has no room for", "[cuda][gemm]") {
  MINFER_REQUIRE_GPU();
  Parts problem(64, 64, 640);
  const Guarded<float> out(64 * 64);
  const auto refused = [&](const auto& change) {
    cu::GemmArgs args = problem.args(64, 2);
    args.out_f32 = out.data();
    change(args);
    CHECK_THROWS_AS(cu::gemm(args, nullptr), Error);
  };
  refused([](cu::GemmArgs& a) { a.nt = 65; });
  refused([](cu::GemmArgs& a) { a.split.partials = nullptr; });
  refused([](cu::GemmArgs& a) { a.split.partials += 1; });
  refused([](cu::GemmArgs& a) { a.split.arrivals = nullptr; });
  refused([](cu::GemmArgs& a) { a.split.n = 9; });  // of 128 columns: five are all
  refused([](cu::GemmArgs& a) { a.split.n = 17; });
  refused([](cu::GemmArgs& a) { a.od = 64 * 257; });
}

}  // namespace minfer::test
