// What the attention tests share: a KV arena with poisoned slots around its sequences, and softmax in f64.
#pragma once

#include <algorithm>
#include <functional>

#include "cuda/kernels/rows.h"
#include "tests/cuda/gpu.h"

namespace minfer::test {

// Derived: P and the result are rounded to f16 (2^-11 each, and an entry may be four times the row's RMS).
inline constexpr double kFlashTolerance = 5e-3;

struct FlashShape {
  int n_head = 0, n_head_kv = 0, head_dim = 0;
  float scale() const { return 1.0f / std::sqrt(static_cast<float>(head_dim)); }
};

inline std::vector<float> rounded(std::span<const half> values) {
  std::vector<float> out(values.size());
  for (size_t i = 0; i < out.size(); ++i) out[i] = to_float(values[i]);
  return out;
}

// One layer's arenas on both sides, NaN in every slot until `fill` gives a sequence its keys and values.
class FlashCache {
 public:
  FlashCache(const FlashShape& shape, int n_slots) : shape_(shape), n_slots_(n_slots) {
    __half_raw nan;
    nan.x = 0x7fff;
    k_.assign(size_t{1} * shape.n_head_kv * n_slots * shape.head_dim, nan);
    v_ = k_;
  }

  // k(kv head, position, dim) and v alike.
  using Value = std::function<float(int h, int position, int d)>;
  void fill(int first_slot, int n_keys, const Value& k, const Value& v) {
    for (int h = 0; h < shape_.n_head_kv; ++h) {
      for (int j = 0; j < n_keys; ++j) {
        for (int d = 0; d < shape_.head_dim; ++d) {
          __half_raw raw;
          raw.x = gguf::f32_to_f16(k(h, j, d));
          k_[at(h, first_slot + j) + d] = raw;
          raw.x = gguf::f32_to_f16(v(h, j, d));
          v_[at(h, first_slot + j) + d] = raw;
        }
      }
    }
  }
  void fill_random(int first_slot, int n_keys, uint32_t seed, float k_sigma = 1.0f) {
    std::mt19937 rng(seed);
    std::normal_distribution<float> normal;
    fill(
        first_slot, n_keys, [&](int, int, int) { return k_sigma * normal(rng); },
        [&](int, int, int) { return normal(rng); });
  }

  void upload() {
    device_k_ = cu::DeviceBuffer<half>(std::span<const half>(k_));
    device_v_ = cu::DeviceBuffer<half>(std::span<const half>(v_));
  }
  cu::KvArena arena() const { return {device_k_.data(), device_v_.data(), n_slots_}; }
  const FlashShape& shape() const { return shape_; }

  // The row of q's head h (its KV head is h / (n_head / n_head_kv)) over positions 0 .. pos.
  std::vector<double> attend(std::span<const float> q, int h, int first_slot, int pos) const {
    const int kv = h / (shape_.n_head / shape_.n_head_kv), n_dim = shape_.head_dim;
    std::vector<double> score(std::max(0, pos + 1)), out(n_dim);
    double largest = -INFINITY, sum = 0;
    for (int j = 0; j <= pos; ++j) {
      const half* k = &k_[at(kv, first_slot + j)];
      for (int d = 0; d < n_dim; ++d) score[j] += static_cast<double>(q[d]) * to_float(k[d]);
      score[j] /= std::sqrt(static_cast<double>(n_dim));
      largest = std::max(largest, score[j]);
    }
    for (int j = 0; j <= pos; ++j) {
      const double p = std::exp(score[j] - largest);
      sum += p;
      const half* v = &v_[at(kv, first_slot + j)];
      if (p < 1e-30) continue;
      for (int d = 0; d < n_dim; ++d) out[d] += p * to_float(v[d]);
    }
    for (double& x : out) x = sum > 0 ? x / sum : 0;
    return out;
  }

 private:
  size_t at(int h, int slot) const { return (size_t{1} * h * n_slots_ + slot) * shape_.head_dim; }

  FlashShape shape_;
  int n_slots_;
  std::vector<half> k_, v_;  // [n_head_kv, n_slots, head_dim]
  cu::DeviceBuffer<half> device_k_, device_v_;
};

inline std::vector<half> random_q(const FlashShape& s, int n_rows, uint32_t seed, float sigma = 1.0f) {
  return to_half(random_normal(size_t{1} * n_rows * s.n_head * s.head_dim, seed, sigma));
}

// n values that a kernel is to write, all bytes 0xff before, and behind them a guard that it must not touch.
class FlashOut {
 public:
  explicit FlashOut(size_t n) : n_(n), buffer_(n + kGuard) { buffer_.fill_bytes(0xff); }
  half* data() const { return buffer_.data(); }
  std::vector<half> values() const {
    std::vector<half> host(buffer_.size());
    buffer_.download(host);
    for (size_t i = n_; i < host.size(); ++i) {
      if (static_cast<__half_raw>(host[i]).x != 0xffff) FAIL("past the last row was written");
    }
    host.resize(n_);
    return host;
  }

 private:
  static constexpr size_t kGuard = 8192;  // more than a row of the tests' shapes
  size_t n_;
  cu::DeviceBuffer<half> buffer_;
};

inline bool same_bits(std::span<const half> a, std::span<const half> b) {
  return std::ranges::equal(
      a, b, [](half x, half y) { return static_cast<__half_raw>(x).x == static_cast<__half_raw>(y).x; });
}

// n normal values with a period of about a million: quick to make, and no two rows alike.
inline std::vector<half> repeated_normal(size_t n, uint32_t seed) {
  const std::vector<half> once = to_half(random_normal(std::min<size_t>(n, 1000003), seed));
  std::vector<half> out(n);
  for (size_t i = 0; i < n; ++i) out[i] = once[i % once.size()];
  return out;
}

// Median, smallest and largest microseconds of one call of `launch(i)`, i = 0 .. n - 1, where all n stand in
// one captured graph that is run n_runs times after two warm-ups.
struct Timing {
  double median = 0, min = 0, max = 0;
};
inline Timing time_graph(int n, int n_runs, const std::function<void(int, cudaStream_t)>& launch) {
  const cu::Stream stream;
  for (int i = 0; i < n; ++i) launch(i, stream.get());
  stream.synchronize("warm-up");
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  cu::check(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal), "capture");
  for (int i = 0; i < n; ++i) launch(i, stream.get());
  cu::check(cudaStreamEndCapture(stream.get(), &graph), "capture");
  cu::check(cudaGraphInstantiate(&exec, graph, 0), "graph");
  std::vector<double> us;
  for (int run = -2; run < n_runs; ++run) {
    cu::Event begin, end;
    begin.record(stream.get());
    cu::check(cudaGraphLaunch(exec, stream.get()), "graph");
    end.record(stream.get());
    end.synchronize();
    if (run >= 0) us.push_back(1000.0 * end.since(begin) / n);
  }
  cudaGraphExecDestroy(exec);
  cudaGraphDestroy(graph);
  std::ranges::sort(us);
  return {us[us.size() / 2], us.front(), us.back()};
}

}  // namespace minfer::test
