#include "cuda/runtime/check.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <utility>

#include "core/error.h"

namespace minfer::cu {
namespace {

bool synchronous() {
  static const bool on = [] {
    const char* value = std::getenv("MINFER_SYNC");
    return value != nullptr && value[0] == '1';
  }();
  return on;
}

}  // namespace

void check(cudaError_t error, const char* op) {
  if (error == cudaSuccess) return;
  cudaGetLastError();
  throw Error(ExitCode::kDevice,
              fmt::format("{}: {} ({})", op, cudaGetErrorString(error), cudaGetErrorName(error)));
}

void check_launch(const char* op) {
  check(cudaGetLastError(), op);
  if (synchronous()) check(cudaDeviceSynchronize(), op);
}

size_t shared_memory_limit() {
  int device = 0, bytes = 0;
  check(cudaGetDevice(&device), "shared_memory_limit");
  check(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
        "shared_memory_limit");
  const char* lowered = std::getenv("MINFER_SMEM_LIMIT");
  const size_t limit = lowered != nullptr ? std::strtoull(lowered, nullptr, 10) : static_cast<size_t>(bytes);
  return std::min(limit, static_cast<size_t>(bytes));
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
