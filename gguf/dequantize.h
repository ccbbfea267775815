// f32 from every block type that minfer supports, bit for bit what the format's reference decoder gives.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gguf/blocks.h"
#include "gguf/isa.h"

namespace minfer::gguf {

// Decodes n values (whole blocks: n % block_size == 0) from `blocks`, which may stand at any address, into
// `out`. The two do not overlap. Safe to call from many threads.
using DequantizeFn = void (*)(const void* blocks, float* out, size_t n);

// The decoder of `type` for this machine's instruction set; null where minfer does not support the type.
DequantizeFn dequantizer(TensorType type);
// The same at a given level, which must be one that this machine has. All levels give the same bits.
DequantizeFn dequantizer(TensorType type, Isa level);

float f16_to_f32(uint16_t bits);   // exact; a NaN keeps its sign and payload and becomes quiet
uint16_t f32_to_f16(float value);  // round to nearest even; too large is infinity; NaNs as above

}  // namespace minfer::gguf
