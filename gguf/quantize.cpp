#include "gguf/quantize.h"

#include <string>

#include "gguf/dequantize.h"
#include "gguf/error.h"

namespace minfer::gguf {

std::vector<std::byte> quantize(TensorType type, const float* values, size_t n) {
  (void)values;
  (void)n;
  throw Error("quantize: type " + std::to_string(static_cast<uint32_t>(type)) + " is not supported");
}

}  // namespace minfer::gguf
