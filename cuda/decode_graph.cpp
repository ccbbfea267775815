#include "cuda/decode_graph.h"

#include "cuda/kernels/advance.h"
#include "cuda/runtime/switches.h"

namespace minfer::cu {

DecodeGraph::~DecodeGraph() {
  for (cudaGraphExec_t graph : graphs_) {
    if (graph != nullptr) cudaGraphExecDestroy(graph);
  }
}

bool DecodeGraph::enabled() {
  return !launches_synchronize() && switch_is_on("MINFER_GRAPH", true);
}

void DecodeGraph::launch(int n_rows, cudaStream_t stream) {
  pipeline_.layers(n_rows, 0, stream);
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

cudaGraphExec_t DecodeGraph::capture(int n_rows, cudaStream_t stream) {
  cudaGraph_t graph = nullptr;
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "decode graph");
  try {
    launch(n_rows, stream);
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
void DecodeGraph::profiled_step(int n_rows, cudaStream_t stream) {
  const cudaGraphExec_t graph = capture(n_rows, stream);
  cudaError_t error = cudaGraphLaunch(graph, stream);
  if (error == cudaSuccess) error = cudaStreamSynchronize(stream);
  cudaGraphExecDestroy(graph);
  check(error, "profiled decode graph");
}

void DecodeGraph::step(int n_rows, cudaStream_t stream) {
  if (!enabled()) return launch(n_rows, stream);
  cudaGraphExec_t& graph = graphs_[static_cast<size_t>(n_rows)];
  if (pipeline_.profiler() != nullptr) return graph ? profiled_step(n_rows, stream) : launch(n_rows, stream);
  if (graph == nullptr) {
    launch(n_rows, stream);  // a first plain step loads every kernel: loading is not allowed inside a capture
    graph = capture(n_rows, stream);
    return;
  }
  check(cudaGraphLaunch(graph, stream), "decode graph");
}

}  // namespace minfer::cu
