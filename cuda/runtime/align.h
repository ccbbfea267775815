// Alignment checks of launchers: a vector load from an address that is not a multiple of its size faults.
#pragma once

#include <cstdint>

namespace minfer::cu {

// Null counts as aligned: whether a pointer may be absent is another check.
template <typename... T>
bool aligned(uintptr_t bytes, const T*... pointers) {
  return ((reinterpret_cast<uintptr_t>(pointers) % bytes == 0) && ...);
}

template <typename... T>
bool aligned16(const T*... pointers) {
  return aligned(16, pointers...);
}

}  // namespace minfer::cu
