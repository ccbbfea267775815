// Operands and an f64 oracle for the tests of gemm.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "cuda/kernels/gemm.h"
#include "tests/cuda/gpu.h"

namespace minfer::test {

// A matrix in f16 that is cheap to make large: values drawn from 8192 normal ones.
struct F16Matrix {
  std::vector<half> values;
  int n_rows = 0, n_cols = 0;
  F16Matrix(int rows, int cols, uint32_t seed, float sigma = 1.0f)
      : values(static_cast<size_t>(rows) * cols), n_rows(rows), n_cols(cols) {
    const std::vector<half> table = to_half(random_normal(8192, seed, sigma));
    uint64_t state = seed * 2654435761u + 1;
    for (half& v : values) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      v = table[state >> 51];
    }
  }
  const half* row(int r) const { return values.data() + static_cast<size_t>(r) * n_cols; }
  half* row(int r) { return values.data() + static_cast<size_t>(r) * n_cols; }
};

inline double dot(const half* a, const half* b, int n) {
  double sum = 0;
  for (int i = 0; i < n; ++i) sum += static_cast<double>(to_float(a[i])) * to_float(b[i]);
  return sum;
}

// A B^T, whole: [a.n_rows, b.n_rows].
inline std::vector<double> product(const F16Matrix& a, const F16Matrix& b) {
  std::vector<float> bf(b.values.size()), af(a.n_cols);
  for (size_t i = 0; i < bf.size(); ++i) bf[i] = to_float(b.values[i]);
  std::vector<double> c(static_cast<size_t>(a.n_rows) * b.n_rows);
  for (int t = 0; t < a.n_rows; ++t) {
    for (int k = 0; k < a.n_cols; ++k) af[k] = to_float(a.row(t)[k]);
    for (int o = 0; o < b.n_rows; ++o) {
      double sum = 0;
      for (int k = 0; k < a.n_cols; ++k)
        sum += static_cast<double>(af[k]) * bf[static_cast<size_t>(o) * a.n_cols + k];
      c[static_cast<size_t>(t) * b.n_rows + o] = sum;
    }
  }
  return c;
}

// n values on the device between two canaries of 64 values; all bytes 0xff (a NaN in f16 and in f32) at
// first.
template <typename T>
class Guarded {
 public:
  explicit Guarded(size_t n) : buffer_(n + 2 * kGuard) { buffer_.fill_bytes(0xff); }
  explicit Guarded(const std::vector<T>& host) : Guarded(host.size()) {
    cu::check(cudaMemcpy(data(), host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice), "upload");
  }
  T* data() const { return buffer_.data() + kGuard; }
  std::vector<T> values() const {
    std::vector<T> all(buffer_.size());
    buffer_.download(all);
    return {all.begin() + kGuard, all.end() - kGuard};
  }
  bool guards_untouched() const {
    std::vector<T> all(buffer_.size());
    buffer_.download(all);
    const std::vector<unsigned char> ff(kGuard * sizeof(T), 0xff);
    return std::memcmp(all.data(), ff.data(), ff.size()) == 0 &&
           std::memcmp(&all[all.size() - kGuard], ff.data(), ff.size()) == 0;
  }

 private:
  static constexpr size_t kGuard = 64;
  cu::DeviceBuffer<T> buffer_;
};

}  // namespace minfer::test
