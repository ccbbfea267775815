#include "cuda/profiler.h"

#include <algorithm>

namespace minfer::cu {
namespace {

void record(const Event& event, cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check(cudaStreamIsCapturing(stream, &status), "profiler");
  const bool captured = status == cudaStreamCaptureStatusActive;
  check(cudaEventRecordWithFlags(event.get(), stream,
                                 captured ? cudaEventRecordExternal : cudaEventRecordDefault),
        "profiler");
}

}  // namespace

Event& Profiler::event(size_t i) {
  while (events_.size() <= i) events_.emplace_back();
  return events_[i];
}

void Profiler::begin(cudaStream_t stream) {
  record(event(2 * spans_.size()), stream);
}

void Profiler::end(const char* name, double flops, double bytes, cudaStream_t stream) {
  record(event(2 * spans_.size() + 1), stream);
  spans_.push_back({name, flops, bytes, 2 * spans_.size()});
}

double Profiler::elapsed_ms() {
  if (spans_.empty()) return 0;
  const Event& last = events_[spans_.back().events + 1];
  last.synchronize();
  return last.since(events_[spans_.front().events]);
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
