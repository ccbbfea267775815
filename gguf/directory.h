// Everything of one GGUF file but the tensors' values: its keys and where each tensor lies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "gguf/metadata.h"
#include "gguf/tensor.h"

namespace minfer::gguf {

struct Directory {
  uint32_t version = 0;
  Metadata metadata;
  std::vector<Tensor> tensors;  // in file order
};

// Reads and validates the file in `bytes`, which the result points into. Afterwards every view lies inside
// the file, keys and names are unique, shapes are whole blocks, sizes do not overflow and no two tensors
// share a byte. Throws Error for anything else. `file_name` stands for the file in messages.
Directory read_directory(std::span<const std::byte> bytes, const std::string& file_name);

}  // namespace minfer::gguf
