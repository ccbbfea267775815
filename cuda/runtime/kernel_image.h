// Whether this binary's kernels can run on the current card.
#pragma once

#include <cuda_runtime_api.h>

namespace minfer::cu {

// Asks for a kernel that does nothing, which starts CUDA on the card: cudaErrorNoKernelImageForDevice where
// the binary has no code for it. The sticky error is cleared.
cudaError_t find_kernel_image();

}  // namespace minfer::cu
