#include "cuda/runtime/device_memory.h"

#include <cuda_runtime_api.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <mutex>

#include "core/error.h"
#include "cuda/runtime/check.h"

namespace minfer::cu {
namespace {

std::mutex g_mutex;
uint64_t g_in_use = 0, g_peak = 0, g_before = 0;

}  // namespace

void* allocate_device(size_t bytes) {
  void* data = nullptr;
  if (cudaMalloc(&data, bytes) != cudaSuccess) {
    cudaGetLastError();
    size_t free_bytes = 0, total_bytes = 0;
    check(cudaMemGetInfo(&free_bytes, &total_bytes), "device memory");
    throw Error(ExitCode::kDevice,
                fmt::format("device memory: needs {} bytes, {} available", bytes, free_bytes));
  }
  const std::lock_guard lock(g_mutex);
  g_in_use += bytes;
  g_peak = std::max(g_peak, g_in_use);
  return data;
}

void free_device(void* data, size_t bytes) {
  if (data == nullptr) return;
  cudaFree(data);
  const std::lock_guard lock(g_mutex);
  g_in_use -= bytes;
}

uint64_t peak_device_memory() {
  const std::lock_guard lock(g_mutex);
  return g_peak - g_before;
}

void reset_peak_device_memory() {
  const std::lock_guard lock(g_mutex);
  g_peak = g_before = g_in_use;
}

}  // namespace minfer::cu
