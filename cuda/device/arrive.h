// Counting the blocks that have come to a point of a kernel.
#pragma once

#include <cstdint>

namespace minfer::cu {

// Adds one to *count, and gives what it was; n - 1 becomes 0. What this thread, and those it met at a
// barrier, wrote before is visible to whoever arrives later, and what earlier arrivals wrote is visible here
// and past the next barrier.
__device__ __forceinline__ uint32_t arrive_and_wrap(uint32_t* count, uint32_t n) {
  uint32_t before;
  asm volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;"
               : "=r"(before)
               : "l"(count), "r"(n - 1)
               : "memory");
  return before;
}

}  // namespace minfer::cu
