// Asynchronous copies from global to shared memory, 16 bytes a thread, past L1 and without a register (sm_80
// on). A thread waits for its own groups only: other threads see the bytes after that wait and a barrier.
#pragma once

#include <cstdint>

namespace minfer::cu {

// Both addresses 16-byte aligned. L2 fetches the whole 128-byte line around the source: a row's next k step
// is in it.
__device__ __forceinline__ void cp_async_16(uint32_t shared, const void* global) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(shared), "l"(global) : "memory");
}

// The same where `valid`, else 16 zero bytes: nothing is read then, but `global` must still be an address of
// ours.
__device__ __forceinline__ void cp_async_16_or_zero(uint32_t shared, const void* global, bool valid) {
  const int n_bytes = valid ? 16 : 0;
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(shared), "l"(global),
               "r"(n_bytes)
               : "memory");
}

// Closes this thread's group of copies (an empty group is one too, and counts as arrived).
__device__ __forceinline__ void cp_async_commit() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

// Waits until at most the kPending youngest groups of this thread are still under way.
template <int kPending>
__device__ __forceinline__ void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

}  // namespace minfer::cu
