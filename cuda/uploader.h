// File memory -> page-locked staging -> device, on several streams at once; each piece is packed where it
// arrives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "cuda/kernels/packed_matrix.h"

namespace minfer::cu {

// A matrix of the file on its way into `out`.
struct Upload {
  std::span<const std::byte> blocks;  // as in the file
  PackedMatrix out;
  void* out_data = nullptr;  // = out.data, writable
  RowOrder order;
};

// Returns when everything is on the device. `progress` is told the bytes done so far, from several threads
// but one at a time; it may be empty. Throws Error(kDevice), and Error(kInterrupted) on Ctrl-C.
void upload_all(std::span<const Upload> uploads, const std::function<void(uint64_t)>& progress);
// What upload_all takes on the device meanwhile, at most; largest_row: bytes of a row of the file.
uint64_t upload_staging_bytes(uint64_t largest_row);

}  // namespace minfer::cu
