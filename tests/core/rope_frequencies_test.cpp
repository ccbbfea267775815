#include "core/rope_frequencies.h"

#include <cmath>

#include "core/error.h"
#include "tests/support/catch.h"

namespace minfer {
namespace {

HParams qwen2() {
  HParams h;
  h.n_rot = 128;
  h.rope_freq_base = 1e6f;
  h.n_ctx_orig = 32768;
  return h;
}

double trained(const HParams& h, int pair) {
  return std::pow(double{h.rope_freq_base}, -2.0 * pair / h.n_rot);
}

bool close(double got, double want) {
  return std::abs(got - want) <= 1e-14 * std::abs(want);
}

}  // namespace

TEST_CASE("rope_frequencies: base^(-2i / n_rot), in either pairing", "[core][rope]") {
  HParams h = qwen2();
  for (const RopePairing pairing : {RopePairing::kNorm, RopePairing::kNeox}) {
    h.rope_pairing = pairing;
    const RopeFrequencies table = rope_frequencies(h, {});
    REQUIRE(table.radians.size() == 64);
    CHECK(table.radians[0] == 1.0);
    CHECK(close(table.radians[32], 1e-3));  // base^(-1/2)
    for (int i = 0; i < 64; ++i) CHECK(close(table.radians[i], trained(h, i)));
    CHECK(table.magnitude == 1.0);
  }
}

TEST_CASE("rope_frequencies: a model that turns nothing has none", "[core][rope]") {
  HParams h = qwen2();
  h.n_rot = 0;
  CHECK(rope_frequencies(h, {}).radians.empty());
}

TEST_CASE("rope_frequencies: linear scaling divides every position", "[core][rope]") {
  HParams h = qwen2();
  h.rope_scale = 4;
  CHECK(rope_frequencies(h, {}).radians[5] ==
        trained(h, 5));  // a factor without a scaling type counts for nothing
  h.rope_scaling = RopeScaling::kLinear;
  const RopeFrequencies table = rope_frequencies(h, {});
  for (int i = 0; i < 64; ++i) CHECK(close(table.radians[i], trained(h, i) / 4));
  CHECK(table.magnitude == 1.0);
}

TEST_CASE("rope_frequencies: rope_freqs divides each pair by its factor", "[core][rope]") {
  HParams h = qwen2();
  h.n_rot = 8;
  const std::vector<float> factors = {1.0f, 1.5f, 8.0f, 32.0f};
  const RopeFrequencies table = rope_frequencies(h, factors);
  for (int i = 0; i < 4; ++i) CHECK(close(table.radians[i], trained(h, i) / double{factors[i]}));
}

// Qwen2.5's published setting. The ramp runs from pair floor(128 ln(32768 / (32 * 2 pi)) / (2 ln 1e6)) =
// floor(23.60) to ceil(128 ln(32768 / (2 pi)) / (2 ln 1e6)) = ceil(39.65).
TEST_CASE("rope_frequencies: YaRN leaves fast pairs, interpolates slow ones, and blends between",
          "[core][rope]") {
  HParams h = qwen2();
  h.rope_scaling = RopeScaling::kYarn;
  h.rope_scale = 4;
  const RopeFrequencies table = rope_frequencies(h, {});
  for (int i = 0; i <= 23; ++i) CHECK(close(table.radians[i], trained(h, i)));
  for (int i = 40; i < 64; ++i) CHECK(close(table.radians[i], trained(h, i) / 4));
  const double share = 1 - (31.0 - 23) / (40 - 23);
  CHECK(close(table.radians[31], trained(h, 31) * (share + (1 - share) / 4)));
  CHECK(close(table.magnitude, 1 + 0.1 * std::log(4.0)));

  h.yarn_attn_factor = 0.5f;
  CHECK(close(rope_frequencies(h, {}).magnitude, 0.5 * (1 + 0.1 * std::log(4.0))));
  h.yarn_ext_factor = 0;  // then it is linear scaling
  CHECK(close(rope_frequencies(h, {}).radians[3], trained(h, 3) / 4));
  CHECK(rope_frequencies(h, {}).magnitude == 0.5);
}

TEST_CASE("rope_frequencies: refuses factors that do not fit", "[core][rope]") {
  HParams h = qwen2();
  h.n_rot = 8;
  const auto refused = [&h](std::vector<float> factors) {
    CHECK_THROWS_AS(rope_frequencies(h, factors), Error);
  };
  refused({1, 1, 1});
  refused({1, 1, 1, 1, 1});
  refused({1, 0, 1, 1});
  refused({1, -2, 1, 1});
  refused({1, NAN, 1, 1});
  refused({1, INFINITY, 1, 1});
}

}  // namespace minfer
