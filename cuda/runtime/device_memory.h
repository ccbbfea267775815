// Device memory as this process takes it, counted: what is announced before loading can be held against it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace minfer::cu {

// Throws Error(kDevice) with needed and available.
void* allocate_device(size_t bytes);
void free_device(void* data, size_t bytes);

// Bytes, the most that was allocated at a time since the last reset (or the start), beyond what was then.
uint64_t peak_device_memory();
void reset_peak_device_memory();

}  // namespace minfer::cu
