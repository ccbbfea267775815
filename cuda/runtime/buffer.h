// Memory on the device, and page-locked memory on the host, owned.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <span>
#include <utility>

#include "cuda/runtime/check.h"
#include "cuda/runtime/device_memory.h"

namespace minfer::cu {

// n values of T in device memory, uninitialised. Throws Error(kDevice) where there is no room.
template <typename T>
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  explicit DeviceBuffer(size_t n) : n_(n) {
    if (n > 0) data_ = static_cast<T*>(allocate_device(n * sizeof(T)));
  }
  explicit DeviceBuffer(std::span<const T> host) : DeviceBuffer(host.size()) { upload(host); }
  ~DeviceBuffer() { free_device(data_, bytes()); }
  DeviceBuffer(DeviceBuffer&& other) noexcept { swap(other); }
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    DeviceBuffer(std::move(other)).swap(*this);
    return *this;
  }

  T* data() const { return data_; }
  size_t size() const { return n_; }
  size_t bytes() const { return n_ * sizeof(T); }

  // Copies of host.size() <= size() values, and a fill, for set-up and tests: done, for every stream, when
  // they return.
  void upload(std::span<const T> host) {
    MINFER_REQUIRE("upload", host.size() <= size());
    check(cudaMemcpy(data_, host.data(), host.size_bytes(), cudaMemcpyHostToDevice), "upload");
    wait_for_legacy_stream("upload");
  }
  void download(std::span<T> host) const {
    MINFER_REQUIRE("download", host.size() <= size());
    check(cudaMemcpy(host.data(), data_, host.size_bytes(), cudaMemcpyDeviceToHost), "download");
  }
  void fill_bytes(int value) {
    check(cudaMemset(data_, value, bytes()), "fill");
    wait_for_legacy_stream("fill");
  }

 private:
  // cudaMemset, and cudaMemcpy from pageable memory, may return while the device still writes. That is in the
  // order of the legacy stream, for which the non-blocking streams of the engine do not wait.
  static void wait_for_legacy_stream(const char* op) { check(cudaStreamSynchronize(cudaStreamLegacy), op); }

  void swap(DeviceBuffer& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(n_, other.n_);
  }
  T* data_ = nullptr;
  size_t n_ = 0;
};

// n values of T in page-locked host memory, uninitialised.
template <typename T>
class PinnedBuffer {
 public:
  PinnedBuffer() = default;
  explicit PinnedBuffer(size_t n) : n_(n) {
    if (n > 0) check(cudaMallocHost(reinterpret_cast<void**>(&data_), n * sizeof(T)), "page-locked memory");
  }
  ~PinnedBuffer() { cudaFreeHost(data_); }
  PinnedBuffer(PinnedBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), n_(std::exchange(other.n_, 0)) {}
  PinnedBuffer& operator=(PinnedBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(n_, other.n_);
    return *this;
  }

  T* data() const { return data_; }
  size_t size() const { return n_; }
  T& operator[](size_t i) const { return data_[i]; }

 private:
  T* data_ = nullptr;
  size_t n_ = 0;
};

}  // namespace minfer::cu
