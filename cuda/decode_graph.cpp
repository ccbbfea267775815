#include "cuda/decode_graph.h"

#include <cstdlib>

#include "cuda/kernels/advance.h"

namespace minfer::cu {

DecodeGraph::~DecodeGraph() {
  for (cudaGraphExec_t graph : graphs_) {
    if (graph != nullptr) cudaGraphExecDestroy(graph);
  }
}

bool DecodeGraph::enabled() {
  const char* value = std::getenv("MINFER_GRAPH");
  return value == nullptr || value[0] != '0';
}

void DecodeGraph::launch(int n_rows, cudaStream_t stream) {
  pipeline_.layers(n_rows, 0, stream);
  pipeline_.head(0, n_rows, stream);
  advance({.choices = w_.choices.data(), .ids = w_.ids.data(), .pos = w_.pos.data(), .n_rows = n_rows}, stream);
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

void DecodeGraph::step(int n_rows, cudaStream_t stream) {
  if (!enabled()) return launch(n_rows, stream);
  cudaGraphExec_t& graph = graphs_[static_cast<size_t>(n_rows)];
  if (graph == nullptr) {
    launch(n_rows, stream);  // a first plain step loads every kernel: loading is not allowed inside a capture
    graph = capture(n_rows, stream);
    return;
  }
  check(cudaGraphLaunch(graph, stream), "decode graph");
}

}  // namespace minfer::cu
