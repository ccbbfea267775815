// CUDA calls and preconditions that fail loudly: the op is named, needed and available are printed.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <string>

namespace minfer::cu {

// Throws minfer::Error(kDevice) "op: reason" where error is not cudaSuccess; the sticky error is cleared.
void check(cudaError_t error, const char* op);

// After a launch: throws where it failed. MINFER_SYNC=1 waits for the kernel here, so that an asynchronous
// fault names its op.
void check_launch(const char* op);
bool launches_synchronize();  // MINFER_SYNC=1: no stream can be captured then

// Lets `kernel` use `bytes` of dynamic shared memory. Throws Error(kDevice) with needed and available where
// the card (or MINFER_SMEM_LIMIT=bytes, which stands for a smaller card) has less. Cheap when called again.
void allow_shared_memory(const void* kernel, size_t bytes, const char* op);
size_t
shared_memory_limit();  // bytes a block may opt in to on the current device, lowered by MINFER_SMEM_LIMIT

[[noreturn]] void fail_requirement(const char* op, const char* condition);

}  // namespace minfer::cu

// A launcher's precondition, on in release builds too. `op` is the launcher's name.
#define MINFER_REQUIRE(op, condition)                                 \
  do {                                                                \
    if (!(condition)) ::minfer::cu::fail_requirement(op, #condition); \
  } while (false)
