#include "cuda/runtime/switches.h"

#include <cstdlib>

#include "core/error.h"
#include "tests/support/catch.h"

namespace minfer::test {
namespace {

const char* const kName = "MINFER_TEST_SWITCH";

int number(const char* value) {
  setenv(kName, value, 1);
  return cu::switch_number(kName, 1, 1024, -7);
}

}  // namespace

TEST_CASE("switches: a number in its range, and nothing else", "[cuda][runtime]") {
  unsetenv(kName);
  CHECK(cu::switch_number(kName, 1, 1024, -7) == -7);
  CHECK(number("") == -7);
  CHECK(number("1") == 1);
  CHECK(number("1024") == 1024);
  for (const char* bad : {"0", "1025", "-1", "64k", " 64", "6.4", "many", "99999999999999999999"}) {
    INFO(bad);
    CHECK_THROWS_AS(number(bad), Error);
  }
  unsetenv(kName);
}

TEST_CASE("switches: on or off", "[cuda][runtime]") {
  unsetenv(kName);
  CHECK(cu::switch_is_on(kName, true));
  CHECK_FALSE(cu::switch_is_on(kName, false));
  setenv(kName, "0", 1);
  CHECK_FALSE(cu::switch_is_on(kName, true));
  setenv(kName, "1", 1);
  CHECK(cu::switch_is_on(kName, false));
  setenv(kName, "yes", 1);
  CHECK_THROWS_AS(cu::switch_is_on(kName, false), Error);
  unsetenv(kName);
}

}  // namespace minfer::test
