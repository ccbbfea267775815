// Private to the reference engine: floats on a cache line, zeroed, and touched only as they are used (calloc
// takes large blocks from the system as fresh zero pages).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

namespace minfer {

class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(size_t n) : n_(n) {
    constexpr size_t kAlign = 64;
    if (n > (SIZE_MAX - kAlign) / sizeof(float)) throw std::bad_alloc();
    block_.reset(std::calloc(n * sizeof(float) + kAlign, 1));
    if (!block_) throw std::bad_alloc();
    void* at = block_.get();
    size_t space = n * sizeof(float) + kAlign;
    data_ = static_cast<float*>(std::align(kAlign, n * sizeof(float), at, space));
  }

  float* data() { return data_; }
  const float* data() const { return data_; }
  size_t size() const { return n_; }

 private:
  struct Free {
    void operator()(void* p) const { std::free(p); }
  };
  std::unique_ptr<void, Free> block_;
  float* data_ = nullptr;
  size_t n_ = 0;
};

}  // namespace minfer
