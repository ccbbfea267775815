// f32 into every block type that minfer supports: for test files and for requantizing. Plain rounding to the
// nearest representable value under a per-block scale; no importance weighting.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gguf/blocks.h"

namespace minfer::gguf {

// Encodes n values (n % block_size == 0). Throws Error, naming the type and the place, where the type is not
// supported, n is no multiple of the block, or a value is not finite or too large for the f16 scales of the
// type.
std::vector<std::byte> quantize(TensorType type, const float* values, size_t n);

}  // namespace minfer::gguf
