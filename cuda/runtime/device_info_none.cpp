#include "cuda/runtime/device_info.h"

namespace minfer::cu {

Devices list_devices() {
  return {{}, "this binary was built without CUDA"};
}

std::string why_unusable() {
  return list_devices().why_none;
}

std::string toolkit_description() {
  return "no CUDA";
}

}  // namespace minfer::cu
