// Streams and events, owned.
#pragma once

#include <cuda_runtime_api.h>

#include <utility>

#include "cuda/runtime/check.h"

namespace minfer::cu {

class Stream {
 public:
  Stream() { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "stream"); }
  ~Stream() {
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }
  Stream(Stream&& other) noexcept : stream_(std::exchange(other.stream_, nullptr)) {}
  Stream& operator=(Stream&& other) noexcept {
    std::swap(stream_, other.stream_);
    return *this;
  }
  cudaStream_t get() const { return stream_; }
  void synchronize(const char* op) const { check(cudaStreamSynchronize(stream_), op); }

 private:
  cudaStream_t stream_ = nullptr;
};

class Event {
 public:
  Event() { check(cudaEventCreate(&event_), "event"); }
  ~Event() {
    if (event_ != nullptr) cudaEventDestroy(event_);
  }
  Event(Event&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
  Event& operator=(Event&& other) noexcept {
    std::swap(event_, other.event_);
    return *this;
  }
  cudaEvent_t get() const { return event_; }
  void record(cudaStream_t stream) { check(cudaEventRecord(event_, stream), "event"); }
  void synchronize() const { check(cudaEventSynchronize(event_), "event"); }
  // Milliseconds from `start` to this one; both must have completed.
  float since(const Event& start) const {
    float ms = 0;
    check(cudaEventElapsedTime(&ms, start.event_, event_), "event");
    return ms;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace minfer::cu
