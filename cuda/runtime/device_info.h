// The NVIDIA cards of this machine, asked for without touching them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace minfer::cu {

struct DeviceInfo {
  std::string name;
  int compute_major = 0;
  int compute_minor = 0;
  uint64_t memory_bytes = 0;  // all of it, free or not
};

struct Devices {
  std::vector<DeviceInfo> found;
  std::string why_none;  // one phrase where `found` is empty
};

// Never throws: no driver, no card, a driver that is too old and a build without CUDA are answers.
Devices list_devices();

// One phrase that says why the first card cannot run this binary's kernels: none there, a driver that is too
// old, no code for its architecture. Empty where it can. Starts CUDA on the card; never throws.
std::string why_unusable();

// "CUDA 13.0", or "no CUDA": what this binary was built with.
std::string toolkit_description();

}  // namespace minfer::cu
