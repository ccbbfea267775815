// Private to gguf: the decoders as compiled for each instruction set.
#pragma once

#include "gguf/dequantize.h"

namespace minfer::gguf {

namespace base {
DequantizeFn decoder(TensorType type);
}
#if defined(__x86_64__)
namespace avx2 {
DequantizeFn decoder(TensorType type);
}
namespace avx512 {
DequantizeFn decoder(TensorType type);
}
#endif

}  // namespace minfer::gguf
