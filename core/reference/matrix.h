// Private to the reference engine: activations, a row a token.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "core/reference/aligned_buffer.h"
#include "core/reference/kernels.h"

namespace minfer {

inline int64_t padded(int64_t n) {
  return (n + kRowPad - 1) / kRowPad * kRowPad;
}

// [n_rows, dim], rows padded with zeros to whole vectors: a product may run over the padding.
class Matrix {
 public:
  Matrix() = default;
  explicit Matrix(int32_t dim) : dim_(dim), stride_(padded(dim)) {}

  // Contents are lost where it grows. Throws std::bad_alloc, and then nothing has changed.
  void resize(int32_t n_rows) {
    const size_t needed = static_cast<size_t>(n_rows) * static_cast<size_t>(stride_);
    if (needed > buffer_.size()) buffer_ = AlignedBuffer(needed);
    n_rows_ = n_rows;
  }

  int32_t n_rows() const { return n_rows_; }
  int32_t dim() const { return dim_; }
  int64_t stride() const { return stride_; }
  float* row(int64_t i) { return buffer_.data() + i * stride_; }
  const float* row(int64_t i) const { return buffer_.data() + i * stride_; }
  std::span<float> values(int64_t i) { return {row(i), static_cast<size_t>(dim_)}; }
  std::span<const float> values(int64_t i) const { return {row(i), static_cast<size_t>(dim_)}; }

 private:
  AlignedBuffer buffer_;
  int32_t n_rows_ = 0;
  int32_t dim_ = 0;
  int64_t stride_ = 0;
};

}  // namespace minfer
