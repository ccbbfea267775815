// Device time by op: events around every launch of the pipeline, summed by name. Off (null) in normal runs.
#pragma once

#include <cuda_runtime_api.h>

#include <string>
#include <vector>

#include "cuda/runtime/stream.h"

namespace minfer::cu {

class Profiler {
 public:
  struct Op {
    std::string name;
    int n_calls = 0;
    double ms = 0, flops = 0, bytes = 0;  // summed over the calls
  };

  // On a stream that is being captured, the events become part of the graph, and hold the times of its last
  // launch. The work put on `stream` from begin to end belongs to `name`. flops and bytes are what the op has
  // to do at least.
  void begin(cudaStream_t stream);
  void end(const char* name, double flops, double bytes, cudaStream_t stream);
  // Device time from the first begin to the last end; waits for the device.
  double elapsed_ms();
  // Waits for the device; ops in the order in which they first ran. Starts anew.
  std::vector<Op> collect();

 private:
  struct Span {
    const char* name;
    double flops, bytes;
    size_t events;  // index of its first event
  };
  Event& event(size_t i);
  std::vector<Event> events_;
  std::vector<Span> spans_;
};

}  // namespace minfer::cu
