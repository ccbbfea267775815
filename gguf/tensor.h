// One entry of the tensor directory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "gguf/blocks.h"
#include "gguf/format.h"

namespace minfer::gguf {

struct Tensor {
  std::string_view name;
  TensorType type = TensorType::kF32;
  uint32_t n_dims = 0;
  std::array<uint64_t, kMaxDims> dims{1, 1, 1, 1};  // dims[0] is contiguous
  std::span<const std::byte> data;                  // rows of row_bytes() each, in file memory

  uint64_t n_elements() const {
    return dims[0] * dims[1] * dims[2] * dims[3];
  }  // checked against overflow on reading
  uint64_t n_rows() const { return dims[1] * dims[2] * dims[3]; }
  uint64_t row_bytes() const { return data.size() / (n_rows() ? n_rows() : 1); }
};

}  // namespace minfer::gguf
