// How fast gemm is, by shape and tile: `test_cuda "[.bench]"`.
#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>

#include "cuda/kernels/gemm_tile.h"
#include "tests/cuda/gemm_operands.h"

namespace minfer::test {
namespace {

constexpr double kCeilingTflops = 790;       // cuBLAS, f16, 8192^3 on an H200
constexpr size_t kPool = size_t{320} << 20;  // halves; larger than L2 many times over
constexpr int kSamples = 20;

struct Layer {
  const char* name;
  int od, id;
  cu::GemmEpilogue epilogue;
};
const Layer kLayers[] = {{"qkv", 4608, 3584, cu::GemmEpilogue::kStore},
                         {"o", 3584, 3584, cu::GemmEpilogue::kResidual},
                         {"gate_up", 37888, 3584, cu::GemmEpilogue::kSwiglu},
                         {"down", 3584, 18944, cu::GemmEpilogue::kResidual}};

struct Bench {
  cu::DeviceBuffer<half> pool{kPool}, a{size_t{4096} * 18944}, out_f16{size_t{4096} * 18944};
  cu::DeviceBuffer<float> a_f32{size_t{4096} * 18944}, out_f32{size_t{4096} * 4608}, bias{size_t{37888}};
  cu::Stream stream;
  cu::Event begin, end;
  size_t at = 0;  // in the pool, where the next B lies
  int n_parts = 1;
  cu::DeviceBuffer<float> partials{cu::kGemmPartials};
  cu::DeviceBuffer<uint32_t> arrivals{size_t{cu::kMaxGemmPartBlocks}};

  Bench() {
    const F16Matrix random(4096, 4096, 5);
    const size_t n = random.values.size();
    for (size_t i = 0; i < kPool; i += n) copy(pool.data() + i, random.values.data(), std::min(n, kPool - i));
    for (size_t i = 0; i < a.size(); i += n)
      copy(a.data() + i, random.values.data(), std::min(n, a.size() - i));
    const std::vector<float> f32 = random_normal(size_t{1} << 20, 6);
    for (size_t i = 0; i < a_f32.size(); i += f32.size()) {
      copy(a_f32.data() + i, f32.data(), std::min(f32.size(), a_f32.size() - i));
    }
    out_f32.fill_bytes(0), bias.fill_bytes(0), arrivals.fill_bytes(0);
  }
  template <typename T>
  static void copy(T* to, const T* from, size_t n) {
    cu::check(cudaMemcpy(to, from, n * sizeof(T), cudaMemcpyHostToDevice), "upload");
  }

  void launch(const Layer& layer, int nt, const cu::GemmTile& tile, bool f32_a) {
    const size_t n = static_cast<size_t>(layer.od) * layer.id;
    if (at + n > kPool) at = 0;
    cu::GemmArgs args;
    args.a = f32_a ? nullptr : a.data();
    args.a_f32 = f32_a ? a_f32.data() : nullptr;
    args.b = pool.data() + at;
    args.nt = nt, args.od = layer.od, args.id = layer.id;
    args.epilogue = layer.epilogue;
    args.bias = layer.epilogue == cu::GemmEpilogue::kStore ? bias.data() : nullptr;
    args.out_f32 = out_f32.data(), args.out_f16 = out_f16.data(), args.scale = 1.0f / 64;
    args.split = {n_parts, partials.data(), arrivals.data()};
    if (n_parts > 1) {
      cu::gemm(args, stream.get());
    } else {
      cu::gemm(args, tile, stream.get());
    }
    at += n;
  }

  // Microseconds a launch: median, least, most. Several launches a sample, so that events weigh little.
  std::vector<float> time(const Layer& layer, int nt, const cu::GemmTile& tile, bool f32_a) {
    const double flop = 2.0 * nt * layer.od * layer.id;
    const int launches = flop > 1e11 ? 2 : flop > 2e10 ? 4 : 8;
    std::vector<float> us;
    for (int i = -2; i < kSamples; ++i) {
      begin.record(stream.get());
      for (int j = 0; j < launches; ++j) launch(layer, nt, tile, f32_a);
      end.record(stream.get());
      end.synchronize();
      if (i >= 0) us.push_back(end.since(begin) * 1000 / launches);
    }
    std::sort(us.begin(), us.end());
    return {us[us.size() / 2], us.front(), us.back()};
  }
};

bool same(const cu::GemmTile& x, const cu::GemmTile& y) {
  return x.bm == y.bm && x.tm == y.tm && x.ks == y.ks;
}

double tflops(const Layer& layer, int nt, double us) {
  return 2.0 * nt * layer.od * layer.id / us * 1e-6;
}

// One line: the default tile's time, then TFLOP/s of every tile. Returns the default's and the best tile's
// time.
std::pair<double, double> measure(Bench& bench, const Layer& layer, int nt, bool f32_a) {
  const cu::GemmTile chosen = cu::gemm_tile(nt, layer.od, layer.id, f32_a);
  std::string all;
  std::vector<float> of_chosen;
  double best = INFINITY;
  for (const cu::GemmTile& tile : cu::kGemmTiles) {
    if (f32_a && !cu::gemm_takes_f32_a(tile)) continue;
    const std::vector<float> us = bench.time(layer, nt, tile, f32_a);
    if (same(tile, chosen)) of_chosen = us;
    best = std::min<double>(best, us[0]);
    char text[16];
    std::snprintf(text, sizeof text, "%6.0f", tflops(layer, nt, us[0]));
    all += text;
  }
  const double rate = tflops(layer, nt, of_chosen[0]);
  std::printf("%4d %-7s %s %-10s %7.1f (%7.1f %7.1f) %4.0f %.2f |%s\n", nt, layer.name, f32_a ? "f32" : "f16",
              chosen.describe().c_str(), of_chosen[0], of_chosen[1], of_chosen[2], rate,
              rate / kCeilingTflops, all.c_str());
  return {of_chosen[0], best};
}

}  // namespace

TEST_CASE("gemm: speed", "[.bench]") {
  MINFER_REQUIRE_GPU();
  Bench bench;
  std::string names;
  for (const cu::GemmTile& tile : cu::kGemmTiles) (names += ' ') += tile.describe();
  std::printf("tokens, layer, A, tile, us median (min max), TFLOP/s, of 790 | TFLOP/s of%s\n", names.c_str());
  for (const int nt : {2048, 2047, 2111, 4096, 1024, 512, 256, 128, 64}) {
    double chosen_us = 0, best_us = 0, flop = 0;
    for (const Layer& layer : kLayers) {
      const auto [chosen, best] = measure(bench, layer, nt, false);
      chosen_us += chosen, best_us += best, flop += 2.0 * nt * layer.od * layer.id;
    }
    std::printf("%4d the four: default tiles %.1f us, %.0f TFLOP/s; best tiles %.1f us, %.0f TFLOP/s\n", nt,
                chosen_us, flop / chosen_us * 1e-6, best_us, flop / best_us * 1e-6);
  }
  for (const Layer& layer : kLayers) measure(bench, layer, 2048, true);
}

TEST_CASE("gemm_parts: speed", "[.bench]") {
  MINFER_REQUIRE_GPU();
  Bench bench;
  std::printf("tokens, layer, parts that it gets | us of 1, 2 ... parts: median (min max)\n");
  for (const int nt : {9, 64}) {
    for (const Layer& layer : kLayers) {
      std::printf("%2d %-7s %2d |", nt, layer.name, cu::gemm_parts(layer.od, layer.id));
      for (int n = 1; n <= 8 && (layer.od + 63) / 64 * n <= cu::kMaxGemmPartBlocks; ++n) {
        bench.n_parts = n;
        const std::vector<float> us = bench.time(layer, nt, cu::gemm_tile(nt, layer.od, layer.id), false);
        std::printf(" %d: %.1f (%.1f %.1f)", n, us[0], us[1], us[2]);
      }
      std::printf("\n");
    }
  }
}

}  // namespace minfer::test
