// The inner loops at every instruction set of this machine: right, and the same bits in every tile shape.
#include "core/reference/kernels.h"

#include <cmath>
#include <random>
#include <vector>

#include "gguf/isa.h"
#include "tests/support/catch.h"

namespace minfer {
namespace {

struct Level {
  const char* name;
  const ReferenceKernels* kernels;
};

std::vector<Level> levels() {
  std::vector<Level> all{{"base", &base::kReferenceKernels}};
#if defined(__x86_64__)
  if (gguf::isa() >= gguf::Isa::kAvx2) all.push_back({"avx2", &avx2::kReferenceKernels});
  if (gguf::isa() >= gguf::Isa::kAvx512) all.push_back({"avx512", &avx512::kReferenceKernels});
#endif
  return all;
}

std::vector<float> random_floats(size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> values(n);
  for (float& v : values) v = static_cast<float>(random() >> 8) * 0x1p-23f - 1.0f;
  return values;
}

}  // namespace

TEST_CASE("kernels: a product has the same bits in every tile shape", "[kernels]") {
  constexpr int kTokens = 23;
  for (const Level& level : levels()) {
    for (const int n_k : {16, 48, 576, 1536}) {
      CAPTURE(level.name, n_k);
      const auto w = random_floats(static_cast<size_t>(kTileRows * n_k), 1);
      const auto x = random_floats(static_cast<size_t>(kTokens * n_k), 2);
      std::vector<float> one_by_one(kTokens * kTileRows);
      for (int t = 0; t < kTokens; ++t) {
        for (int r = 0; r < kTileRows; ++r) {
          level.kernels->matmul_tile(&w[static_cast<size_t>(r * n_k)], 1, &x[static_cast<size_t>(t * n_k)],
                                     n_k, 1, n_k, &one_by_one[static_cast<size_t>(t * kTileRows + r)],
                                     kTileRows);
          double sum = 0, size = 0;
          for (int k = 0; k < n_k; ++k) {
            const double product =
                double{w[static_cast<size_t>(r * n_k + k)]} * x[static_cast<size_t>(t * n_k + k)];
            sum += product;
            size += std::fabs(product);
          }
          // n_k / kLanes additions in a row, each off by half a unit in the last place at most.
          CHECK(std::fabs(one_by_one[static_cast<size_t>(t * kTileRows + r)] - sum) <=
                size * n_k / 4 * 0x1p-24);
        }
      }
      size_t n_different = 0;
      for (int n_rows = 1; n_rows <= kTileRows; ++n_rows) {
        for (int n_tokens = 1; n_tokens <= kTokens; ++n_tokens) {
          constexpr float kUntouched = 1e30f;
          std::vector<float> out(kTokens * kTileRows, kUntouched);
          level.kernels->matmul_tile(w.data(), n_rows, x.data(), n_k, n_tokens, n_k, out.data(), kTileRows);
          for (int t = 0; t < kTokens; ++t) {
            for (int r = 0; r < kTileRows; ++r) {
              const auto i = static_cast<size_t>(t * kTileRows + r);
              n_different += out[i] != (t < n_tokens && r < n_rows ? one_by_one[i] : kUntouched);
            }
          }
        }
      }
      CHECK(n_different == 0);
    }
  }
}

TEST_CASE("kernels: attention over blocks of keys", "[kernels]") {
  constexpr int kDim = 48, kPositions = 200;
  constexpr int kBlocks = (kPositions + kKeyBlock - 1) / kKeyBlock;
  const auto q = random_floats(kDim, 3);
  const auto keys = random_floats(size_t{kBlocks} * kDim * kKeyBlock, 4);
  const auto values = random_floats(size_t{kPositions} * kDim, 5);
  const auto p = random_floats(kPositions, 6);
  for (const Level& level : levels()) {
    CAPTURE(level.name);
    std::vector<float> scores(kBlocks * kKeyBlock), few(kBlocks * kKeyBlock);
    level.kernels->attention_scores(q.data(), keys.data(), kDim, kBlocks, 0.5f, scores.data());
    size_t n_different = 0;
    for (int n_blocks = 1; n_blocks <= kBlocks; ++n_blocks) {
      level.kernels->attention_scores(q.data(), keys.data(), kDim, n_blocks, 0.5f, few.data());
      for (int j = 0; j < n_blocks * kKeyBlock; ++j) n_different += few[size_t(j)] != scores[size_t(j)];
    }
    CHECK(n_different == 0);
    for (int j = 0; j < kPositions; ++j) {
      double sum = 0;
      for (int d = 0; d < kDim; ++d) {
        sum += 0.5 * q[size_t(d)] * keys[size_t((j / kKeyBlock * kDim + d) * kKeyBlock + j % kKeyBlock)];
      }
      CHECK(std::fabs(scores[size_t(j)] - sum) < 1e-5);
    }

    std::vector<float> out(kDim);
    for (const int n_pos : {1, 63, 64, 65, kPositions}) {
      level.kernels->attention_values(p.data(), values.data(), n_pos, kDim, out.data());
      for (int d = 0; d < kDim; ++d) {
        double sum = 0;
        for (int j = 0; j < n_pos; ++j) sum += double{p[size_t(j)]} * values[size_t(j * kDim + d)];
        CHECK(std::fabs(out[size_t(d)] - sum) < 1e-5);
      }
    }
  }
}

}  // namespace minfer
