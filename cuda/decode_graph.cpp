#include "cuda/decode_graph.h"

#include "cuda/kernels/advance.h"
#include "cuda/runtime/switches.h"

namespace minfer::cu {
namespace {

// A capture costs 1 to 2 ms of the host and saves a step of many rows, whose kernels are longer than a
// launch, 0.1 to 0.3: as sequences come and go most numbers of rows stay for a few steps only.
constexpr int kPlainStepsOfMany = 4;
constexpr int kMaxGraphsOfMany = 64;  // each takes some 0.3 MB of the device

}  // namespace

DecodeGraph::~DecodeGraph() {
  for (const auto& [shape, graph] : graphs_) {
    if (graph.executable != nullptr) cudaGraphExecDestroy(graph.executable);
  }
}

bool DecodeGraph::enabled() {
  return !launches_synchronize() && switch_is_on("MINFER_GRAPH", true);
}

void DecodeGraph::launch(const RowGroup& group, cudaStream_t stream) {
  const int n_rows = group.n_rows;
  pipeline_.layers(group, stream);
  pipeline_.head(0, n_rows, stream);
  Profiler* profiler = pipeline_.profiler();
  if (profiler != nullptr) profiler->begin(stream);
  advance({.choices = w_.choices.data(), .ids = w_.ids.data(), .pos = w_.pos.data(), .n_rows = n_rows},
          stream);
  if (profiler != nullptr) profiler->end("advance", 0, 0, stream);
  const auto n = static_cast<size_t>(n_rows);
  check(cudaMemcpyAsync(results_.choices, w_.choices.data(), sizeof(Choice) * n, cudaMemcpyDeviceToHost,
                        stream),
        "download");
  check(cudaMemcpyAsync(results_.bad_layer, w_.bad_layer.data(), sizeof(int32_t) * n, cudaMemcpyDeviceToHost,
                        stream),
        "download");
}

cudaGraphExec_t DecodeGraph::capture(const RowGroup& group, cudaStream_t stream) {
  cudaGraph_t graph = nullptr;
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "decode graph");
  try {
    launch(group, stream);
  } catch (...) {
    cudaStreamEndCapture(stream, &graph);
    if (graph != nullptr) cudaGraphDestroy(graph);
    throw;
  }
  check(cudaStreamEndCapture(stream, &graph), "decode graph");
  cudaGraphExec_t executable = nullptr;
  const cudaError_t error = cudaGraphInstantiate(&executable, graph, 0);
  cudaGraphDestroy(graph);
  check(error, "decode graph");
  return executable;
}

// A graph of its own: the profiler's events are nodes of it, so that no gap between launches is measured with
// the ops.
void DecodeGraph::profiled_step(const RowGroup& group, cudaStream_t stream) {
  const cudaGraphExec_t graph = capture(group, stream);
  cudaError_t error = cudaGraphLaunch(graph, stream);
  if (error == cudaSuccess) error = cudaStreamSynchronize(stream);
  cudaGraphExecDestroy(graph);
  check(error, "profiled decode graph");
}

void DecodeGraph::step(const RowGroup& group, cudaStream_t stream) {
  if (!enabled()) return launch(group, stream);
  Graph& graph = graphs_[{group.n_rows, group.n_splits}];
  if (pipeline_.profiler() != nullptr) {
    return graph.executable ? profiled_step(group, stream) : launch(group, stream);
  }
  if (graph.executable != nullptr) return check(cudaGraphLaunch(graph.executable, stream), "decode graph");
  launch(group, stream);  // a first plain step loads every kernel: loading is not allowed inside a capture
  const bool has_many_rows = group.n_rows > kGemvMaxRows;
  if (++graph.n_plain_steps < (has_many_rows ? kPlainStepsOfMany : 1)) return;
  if (has_many_rows && n_captured_of_many_ == kMaxGraphsOfMany) return;
  graph.executable = capture(group, stream);
  n_captured_of_many_ += has_many_rows;
}

}  // namespace minfer::cu
