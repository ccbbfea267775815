#include "cuda/runtime/device_info.h"

#include <cuda_runtime_api.h>

namespace minfer::cu {

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
    devices.why_none = cudaGetErrorString(error);
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

std::string toolkit_description() {
  return "CUDA " + std::to_string(CUDART_VERSION / 1000) + "." + std::to_string(CUDART_VERSION % 1000 / 10);
}

}  // namespace minfer::cu
