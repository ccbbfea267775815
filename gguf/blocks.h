// Tensor types and their blocks, as ggml lays them out. Plain C++: device code may include this header.
#pragma once

#include <cstddef>
#include <cstdint>

namespace minfer::gguf {

// The numbers are those of the file format.
enum class TensorType : uint32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ5_0 = 6,
  kQ5_1 = 7,
  kQ8_0 = 8,
  kQ8_1 = 9,
  kQ2_K = 10,
  kQ3_K = 11,
  kQ4_K = 12,
  kQ5_K = 13,
  kQ6_K = 14,
  kQ8_K = 15,
  kIQ2_XXS = 16,
  kIQ2_XS = 17,
  kIQ3_XXS = 18,
  kIQ1_S = 19,
  kIQ4_NL = 20,
  kIQ3_S = 21,
  kIQ2_S = 22,
  kIQ4_XS = 23,
  kI8 = 24,
  kI16 = 25,
  kI32 = 26,
  kI64 = 27,
  kF64 = 28,
  kIQ1_M = 29,
  kBF16 = 30,
  kTQ1_0 = 34,
  kTQ2_0 = 35,
  kMXFP4 = 39,
  kNVFP4 = 40,
  kQ1_0 = 41,
};

struct TypeInfo {
  TensorType type;
  const char* name;      // as llama.cpp prints it: "q4_K"
  uint32_t block_size;   // values a block
  uint32_t block_bytes;  // bytes a block
  bool supported;        // minfer decodes it
};

// Null where the number is no tensor type that this format version knows.
const TypeInfo* type_info(TensorType type);

// The structs of the supported block types are in gguf/block_layouts.h.

}  // namespace minfer::gguf
