// An output buffer that tells what a kernel did to it: every byte is 0xff before the launch (a NaN in f16 and
// f32), and so is a guard behind the end, which must stay.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <vector>

#include "cuda/runtime/buffer.h"

namespace minfer::test {

template <typename T>
class Guarded {
 public:
  explicit Guarded(size_t n) : n_(n), buffer_(n + kGuard) { poison(); }
  void poison() { buffer_.fill_bytes(0xff); }
  T* data() const { return buffer_.data(); }

  // The n values. Throws where the guard was written to.
  std::vector<T> read() const {
    std::vector<T> all(n_ + kGuard);
    buffer_.download(all);
    if (!untouched(std::span<const T>(all).subspan(n_))) throw std::runtime_error("written past the end");
    all.resize(n_);
    return all;
  }

  static bool untouched(std::span<const T> values) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(values.data());
    return std::all_of(bytes, bytes + values.size_bytes(), [](uint8_t b) { return b == 0xff; });
  }

 private:
  static constexpr size_t kGuard = 4096;  // more than any block's tile
  size_t n_;
  cu::DeviceBuffer<T> buffer_;
};

template <typename T>
bool same_bits(std::span<const T> a, std::span<const T> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}
template <typename T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return same_bits(std::span<const T>(a), std::span<const T>(b));
}

}  // namespace minfer::test
