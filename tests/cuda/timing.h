// Timing for the cases tagged [.bench]: one captured graph of many calls, so that the host's launches cost
// nothing, as in decode. Each call gets an index, by which it rotates its operands past the L2 cache.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "cuda/runtime/check.h"
#include "cuda/runtime/stream.h"

namespace minfer::test {

struct Timing {
  double median = 0, min = 0, max = 0;  // microseconds a call
};

// `launch(i, stream)` is captured n_calls times, i = 0 .. n_calls-1; the graph then runs 3 + n_runs times.
template <typename Launch>
Timing time_us(int n_calls, Launch launch, int n_runs = 25) {
  cu::Stream stream;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  cu::check(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal), "capture");
  for (int i = 0; i < n_calls; ++i) launch(i, stream.get());
  cu::check(cudaStreamEndCapture(stream.get(), &graph), "capture");
  cu::check(cudaGraphInstantiate(&exec, graph, 0), "graph");

  std::vector<double> us;
  cu::Event start, stop;
  for (int run = 0; run < 3 + n_runs; ++run) {
    start.record(stream.get());
    cu::check(cudaGraphLaunch(exec, stream.get()), "graph launch");
    stop.record(stream.get());
    stop.synchronize();
    if (run >= 3) us.push_back(1e3 * static_cast<double>(stop.since(start)) / n_calls);
  }
  cudaGraphExecDestroy(exec);
  cudaGraphDestroy(graph);
  std::sort(us.begin(), us.end());
  return {us[us.size() / 2], us.front(), us.back()};
}

inline constexpr double kReadGbPerSecond = 4390;   // measured on an H200
inline constexpr double kF16TflopPerSecond = 790;  // cuBLAS at 8192^3, there

// One line of a memory-bound op.
inline void print_bandwidth(const std::string& what, const Timing& t, double bytes) {
  const double gb_per_second = bytes / t.median * 1e-3;
  std::printf("%-44s %9.2f us [%.2f %.2f] %8.0f GB/s  %5.1f%% of %.0f\n", what.c_str(), t.median, t.min,
              t.max, gb_per_second, 100 * gb_per_second / kReadGbPerSecond, kReadGbPerSecond);
}

}  // namespace minfer::test
