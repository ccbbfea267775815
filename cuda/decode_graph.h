// One decode step (layers, head, choice, advance, the results' way home) as a captured graph. Positions, ids
// and slots are data in device memory, so a graph is valid for every step and sequence; only the number of
// rows is structure.
#pragma once

#include <cuda_runtime_api.h>

#include <array>

#include "cuda/kernels/gemv.h"
#include "cuda/pipeline.h"

namespace minfer::cu {

// Where a step's results go, in page-locked memory; [kGemvMaxRows] at least.
struct StepResults {
  Choice* choices = nullptr;
  int32_t* bad_layer = nullptr;
};

class DecodeGraph {
 public:
  DecodeGraph(Pipeline& pipeline, Workspace& workspace, const StepResults& results)
      : pipeline_(pipeline), w_(workspace), results_(results) {}
  ~DecodeGraph();
  DecodeGraph(const DecodeGraph&) = delete;
  DecodeGraph& operator=(const DecodeGraph&) = delete;

  // Runs one step of n_rows (up to kGemvMaxRows) rows, every one of which is wanted. Afterwards w.ids and
  // w.pos are those of the step that follows, and the results are in host memory once the stream is through.
  // MINFER_GRAPH=0 launches the kernels one by one, and so does MINFER_SYNC=1, which waits for each.
  void step(int n_rows, cudaStream_t stream);
  static bool enabled();

 private:
  void launch(int n_rows, cudaStream_t stream);
  cudaGraphExec_t capture(int n_rows, cudaStream_t stream);
  void profiled_step(int n_rows, cudaStream_t stream);

  Pipeline& pipeline_;
  Workspace& w_;
  StepResults results_;
  std::array<cudaGraphExec_t, kGemvMaxRows + 1> graphs_{};  // by n_rows, captured when first needed
};

}  // namespace minfer::cu
