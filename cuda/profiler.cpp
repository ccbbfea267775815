#include "cuda/profiler.h"

#include <algorithm>

namespace minfer::cu {

Event& Profiler::event(size_t i) {
  while (events_.size() <= i) events_.emplace_back();
  return events_[i];
}

void Profiler::begin(cudaStream_t stream) { event(2 * spans_.size()).record(stream); }

void Profiler::end(const char* name, double flops, double bytes, cudaStream_t stream) {
  event(2 * spans_.size() + 1).record(stream);
  spans_.push_back({name, flops, bytes, 2 * spans_.size()});
}

std::vector<Profiler::Op> Profiler::collect() {
  std::vector<Op> ops;
  for (const Span& span : spans_) {
    events_[span.events + 1].synchronize();
    auto op = std::find_if(ops.begin(), ops.end(), [&](const Op& o) { return o.name == span.name; });
    if (op == ops.end()) op = ops.insert(ops.end(), Op{.name = span.name});
    op->n_calls += 1;
    op->ms += events_[span.events + 1].since(events_[span.events]);
    op->flops += span.flops;
    op->bytes += span.bytes;
  }
  spans_.clear();
  return ops;
}

}  // namespace minfer::cu
