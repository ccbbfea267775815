#include "cuda/runtime/device_info.h"

#include <cuda_runtime_api.h>

#include "cuda/runtime/kernel_image.h"

namespace minfer::cu {
namespace {

std::string version(int number) {
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

}  // namespace

Devices list_devices() {
  Devices devices;
  int driver_version = 0;
  if (cudaDriverGetVersion(&driver_version) != cudaSuccess || driver_version == 0) {
    cudaGetLastError();
    devices.why_none = "no NVIDIA driver";
    return devices;
  }
  int n_devices = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&n_devices); error != cudaSuccess) {
    cudaGetLastError();  // the error is reported here: the next call must not meet it again
    devices.why_none = error == cudaErrorInsufficientDriver
                           ? "the NVIDIA driver is for CUDA " + version(driver_version) +
                                 ", and this binary needs " + version(CUDART_VERSION)
                           : cudaGetErrorString(error);
    return devices;
  }
  for (int d = 0; d < n_devices; ++d) {
    cudaDeviceProp properties{};
    if (cudaGetDeviceProperties(&properties, d) != cudaSuccess) {
      cudaGetLastError();
      continue;
    }
    devices.found.push_back({properties.name, properties.major, properties.minor, properties.totalGlobalMem});
  }
  if (devices.found.empty()) devices.why_none = "no CUDA-capable device is detected";
  return devices;
}

std::string why_unusable() {
  const Devices devices = list_devices();
  if (devices.found.empty()) return devices.why_none;
  const cudaError_t error = find_kernel_image();
  if (error == cudaSuccess) return {};
  const DeviceInfo& card = devices.found.front();
  if (error == cudaErrorNoKernelImageForDevice) {
    return card.name + " has compute capability " + std::to_string(card.compute_major) + "." +
           std::to_string(card.compute_minor) + ", and this binary has code for " MINFER_CUDA_ARCHS;
  }
  return card.name + ": " + cudaGetErrorString(error);
}

std::string toolkit_description() {
  return "CUDA " + version(CUDART_VERSION);
}

}  // namespace minfer::cu
