// One decode step (layers, head, choice, advance, the results' way home) as a captured graph. Positions, ids
// and slots are data in device memory, so a graph is valid for every step and sequence; only the number of
// rows, and past kGemvMaxRows of them the splits that flash_decode launches, are structure.
#pragma once

#include <cuda_runtime_api.h>

#include <map>
#include <utility>

#include "cuda/pipeline.h"

namespace minfer::cu {

// Where a step's results go, in page-locked memory; [kMaxHeadRows] at least.
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

  // Runs one step of up to kMaxHeadRows rows without tiles, every one of which is wanted. Afterwards w.ids
  // and w.pos are those of the greedy step that follows, w.logits holds the rows, and the results are in host
  // memory once the stream is through. MINFER_GRAPH=0 launches the kernels one by one, and so does
  // MINFER_SYNC=1, which waits for each.
  void step(const RowGroup& group, cudaStream_t stream);
  static bool enabled();

 private:
  struct Graph {
    cudaGraphExec_t executable = nullptr;  // null: not captured yet
    int n_plain_steps = 0;
  };
  void launch(const RowGroup& group, cudaStream_t stream);
  cudaGraphExec_t capture(const RowGroup& group, cudaStream_t stream);
  void profiled_step(const RowGroup& group, cudaStream_t stream);

  Pipeline& pipeline_;
  Workspace& w_;
  StepResults results_;
  std::map<std::pair<int, int>, Graph> graphs_;  // by n_rows and n_splits
  int n_captured_of_many_ = 0;
};

}  // namespace minfer::cu
