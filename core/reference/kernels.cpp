#include "core/reference/kernels.h"

#include "gguf/isa.h"

namespace minfer {

const ReferenceKernels& reference_kernels() {
  switch (gguf::isa()) {
#if defined(__x86_64__)
    case gguf::Isa::kAvx512:
      return avx512::kReferenceKernels;
    case gguf::Isa::kAvx2:
      return avx2::kReferenceKernels;
#endif
    default:
      return base::kReferenceKernels;
  }
}

}  // namespace minfer
