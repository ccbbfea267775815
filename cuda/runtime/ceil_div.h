// Division upwards, on both sides.
#pragma once

#include <cstdint>

namespace minfer::cu {

// a >= 0, b > 0. Two of them, since a division of 64 bits is slow in a kernel.
constexpr int ceil_div(int a, int b) {
  return (a + b - 1) / b;
}
constexpr int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

}  // namespace minfer::cu
