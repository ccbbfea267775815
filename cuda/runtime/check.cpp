#include "cuda/runtime/check.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <climits>
#include <map>
#include <mutex>
#include <utility>

#include "core/error.h"
#include "cuda/runtime/switches.h"

namespace minfer::cu {
void check(cudaError_t error, const char* op) {
  if (error == cudaSuccess) return;
  cudaGetLastError();
  throw Error(ExitCode::kDevice,
              fmt::format("{}: {} ({})", op, cudaGetErrorString(error), cudaGetErrorName(error)));
}

bool launches_synchronize() {
  static const bool on = switch_is_on("MINFER_SYNC", false);
  return on;
}

void check_launch(const char* op) {
  check(cudaGetLastError(), op);
  if (launches_synchronize()) check(cudaDeviceSynchronize(), op);
}

size_t shared_memory_limit() {
  int device = 0, bytes = 0;
  check(cudaGetDevice(&device), "shared_memory_limit");
  check(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
        "shared_memory_limit");
  return static_cast<size_t>(std::min(switch_number("MINFER_SMEM_LIMIT", 1, INT_MAX, bytes), bytes));
}

void allow_shared_memory(const void* kernel, size_t bytes, const char* op) {
  // Before the cache is asked: a limit that was lowered since holds for kernels that were allowed more.
  if (const size_t limit = shared_memory_limit(); bytes > limit) {
    throw Error(ExitCode::kDevice,
                fmt::format("{}: needs {} bytes of shared memory a block, {} available", op, bytes, limit));
  }
  int device = 0;
  check(cudaGetDevice(&device), op);
  static std::mutex mutex;
  static std::map<std::pair<int, const void*>, size_t>
      allowed;  // the limit is the kernel's, whatever the stream or thread
  const std::lock_guard lock(mutex);
  size_t& granted = allowed[{device, kernel}];
  if (granted >= bytes) return;
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)),
        op);
  granted = bytes;
}

void fail_requirement(const char* op, const char* condition) {
  throw Error(ExitCode::kRuntime, fmt::format("{}: requires {}", op, condition));
}

}  // namespace minfer::cu
