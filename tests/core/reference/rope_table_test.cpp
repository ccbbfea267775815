#include "core/reference/rope_table.h"

#include <cmath>
#include <vector>

#include "tests/support/catch.h"

namespace minfer {
namespace {

HParams rope_params() {
  HParams h;
  h.head_dim = h.n_rot = 64;
  h.rope_freq_base = 10000;
  h.n_ctx_train = h.n_ctx_orig = 4096;
  return h;
}

struct Pair {
  double angle, magnitude;  // the angle within -pi..pi
};

Pair pair_at(const RopeTable& table, int32_t pos, int32_t i) {
  std::vector<float> cos_sin(static_cast<size_t>(2 * table.n_pairs()));
  table.fill(pos, cos_sin.data());
  const double c = cos_sin[static_cast<size_t>(2 * i)], s = cos_sin[static_cast<size_t>(2 * i + 1)];
  return {std::atan2(s, c), std::hypot(s, c)};
}

constexpr double kClose = 1e-6;

}  // namespace

TEST_CASE("rope: plain angles are position times base^(-2i/n)", "[rope]") {
  const RopeTable table(rope_params(), {});
  REQUIRE(table.n_pairs() == 32);
  CHECK(std::fabs(pair_at(table, 3, 0).angle - 3.0) < kClose);
  CHECK(std::fabs(pair_at(table, 100, 16).angle - 1.0) < kClose);  // 10000^(-1/2) = 1/100
  CHECK(std::fabs(pair_at(table, 12345, 7).magnitude - 1.0) < kClose);
}

TEST_CASE("rope: linear scaling divides the position, factors divide the frequency", "[rope]") {
  HParams h = rope_params();
  h.rope_scaling = RopeScaling::kLinear;
  h.rope_scale = 4;
  CHECK(std::fabs(pair_at(RopeTable(h, {}), 8, 0).angle - 2.0) < kClose);
  std::vector<float> factors(32, 1.0f);
  factors[0] = 8;
  CHECK(std::fabs(pair_at(RopeTable(rope_params(), factors), 8, 0).angle - 1.0) < kClose);
  CHECK(std::fabs(pair_at(RopeTable(rope_params(), factors), 100, 16).angle - 1.0) < kClose);
}

TEST_CASE("rope: YaRN leaves fast pairs alone, divides slow ones and grows the magnitude", "[rope]") {
  HParams h = rope_params();
  h.rope_scaling = RopeScaling::kYarn;
  h.rope_scale = 4;
  const RopeTable table(h, {}), plain(rope_params(), {});
  // Pair i turns 4096 / (2 pi 10000^(i/32)) times: over 32 up to i = 10.5, under 1 from i = 22.5 on.
  for (const int32_t i : {0, 5, 10}) {
    CHECK(std::fabs(pair_at(table, 3, i).angle - pair_at(plain, 3, i).angle) < kClose);
  }
  for (const int32_t i : {23, 27, 31}) {
    CHECK(std::fabs(pair_at(table, 100, i).angle - pair_at(plain, 25, i).angle) < kClose);
  }
  // Halfway between: 10 is floor(10.5), 23 is ceil(22.5); pair 16 has 6/13 of the way behind it.
  const double share = 6.0 / 13;
  CHECK(std::fabs(pair_at(table, 100, 16).angle - ((1 - share) + share / 4)) < kClose);
  CHECK(std::fabs(pair_at(table, 7, 3).magnitude - (1 + 0.1 * std::log(4.0))) < kClose);
  h.yarn_attn_factor = 0.5f;
  CHECK(std::fabs(pair_at(RopeTable(h, {}), 7, 3).magnitude - 0.5 * (1 + 0.1 * std::log(4.0))) < kClose);
  h.yarn_ext_factor = 0;  // no ramp: linear scaling
  CHECK(std::fabs(pair_at(RopeTable(h, {}), 8, 0).angle - 2.0) < kClose);
  CHECK(std::fabs(pair_at(RopeTable(h, {}), 8, 0).magnitude - 0.5) < kClose);
}

TEST_CASE("rope: pairs are neighbours or halves", "[rope]") {
  HParams h = rope_params();
  h.n_rot = 4;
  std::vector<float> quarter_turn{0, 1, 0, 1};  // cos, sin
  std::vector<float> head{1, 2, 3, 4, 5};
  RopeTable(h, {}).rotate(head.data(), quarter_turn.data());
  CHECK(head == std::vector<float>{-2, 1, -4, 3, 5});
  head = {1, 2, 3, 4, 5};
  h.rope_pairing = RopePairing::kNeox;
  RopeTable(h, {}).rotate(head.data(), quarter_turn.data());
  CHECK(head == std::vector<float>{-3, -4, 1, 2, 5});
}

}  // namespace minfer
