#include "core/ceilings.h"

#include "core/profile.h"
#include "tests/support/catch.h"

using namespace minfer;

namespace {

const Ceilings kCard{.bytes_per_second = 4e12, .flops_per_second = 800e12, .described = ""};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("ceilings: the one that takes longer to reach binds", "[core][ceilings]") {
  const Speed products = speed(400e12, 1e12, 1, kCard);  // 0.5 s of products, 0.25 s of reading
  CHECK(products.is_flops);
  CHECK(products.per_second == 400e12);
  CHECK(products.of_ceiling == Approx(0.5));
  const Speed reading = speed(400e12, 3e12, 1, kCard);
  CHECK_FALSE(reading.is_flops);
  CHECK(reading.per_second == 3e12);
  CHECK(reading.of_ceiling == Approx(0.75));
  CHECK(contains(reading.describe(), "3000.0 GB/s"));
  CHECK(contains(reading.describe(), "75.0 %"));
}

TEST_CASE("ceilings: what is not known is not made up", "[core][ceilings]") {
  CHECK(speed(1e12, 1e9, 1, {}).is_flops);
  CHECK_FALSE(speed(1e10, 1e9, 1, {}).is_flops);
  CHECK(speed(1e12, 1e9, 1, {}).of_ceiling == 0);
  CHECK(contains(speed(2e12, 0, 1, {}).describe(), "2.0 TFLOP/s"));
  CHECK(contains(speed(2e9, 0, 1, {}).describe(), "2.0 GFLOP/s"));
  CHECK(contains(speed(2e12, 0, 1, {}).describe(), "n/a"));
  CHECK(speed(0, 0, 1, kCard).describe().find_first_of("0123456789") == std::string::npos);
  CHECK(speed(1, 1, 0, kCard).per_second == 0);
}

TEST_CASE("profile: the sum, and what the wall clock has beside it", "[core][profile]") {
  Profile profile{.what = "prefill of 7 tokens",
                  .ops = {{"gemm", 2, 3e-3, 1.2e12, 1e9}, {"norm", 3, 1e-3, 0, 2e9}},
                  .wall_seconds = 5e-3,
                  .profiled_seconds = 6e-3};
  CHECK(profile.sum().n_calls == 5);
  CHECK(profile.sum().seconds == Approx(4e-3));
  CHECK(profile.unaccounted_seconds() == Approx(1e-3));
  const std::string table = profile_table(profile, kCard);
  for (const char* part :
       {"prefill of 7 tokens", "gemm", "400.0 TFLOP/s", "50.0 %", "norm", "2000.0 GB/s", "60.0 %",
        "sum of ops", "80.0 %", "not accounted for", "20.0 %", "wall clock", "5.0000", "6.0000"}) {
    INFO(part << " in\n" << table);
    CHECK(contains(table, part));
  }
  profile.wall_seconds = 3e-3;  // events between the ops may cost more than they measure: said, not hidden
  CHECK(contains(profile_table(profile, kCard), "-1.0000"));
}
