// The fixed sequence of kernels that takes token ids to logits. Three regimes: up to kGemvMaxRows rows read
// the weights from their blocks; more of them go through the GEMM, up to kMaxGemmSplitRows with K in parts
// where that pays. In the head it is the rows that want a result which count. Inside a regime a row's result
// has the same bits whatever stands beside it, but that the first rows of a batch, as far as they are alone in
// their sequence (decode), attend by another kernel than those behind them (pieces of prompts).
#pragma once

#include <cuda_runtime_api.h>

#include <functional>

#include "core/hparams.h"
#include "cuda/kernels/gemm.h"
#include "cuda/kernels/gemv.h"
#include "cuda/kv_cache.h"
#include "cuda/model.h"
#include "cuda/profiler.h"
#include "cuda/workspace.h"

namespace minfer::cu {

// silu(gate) * up is kept times 2^-6 in f16, which so reaches 4.2e6, and down's epilogue undoes it: real
// Qwen2 files pass 65504 there. Beyond it the product is Inf and the run stops.
inline constexpr float kFfnScale = 1.0f / 64;

// How a group of rows attends.
struct RowGroup {
  int n_rows = 0;
  int n_alone = 0;   // the first rows, by flash_decode; up to kGemvMaxRows rows: all of them, alone or not
  int n_splits = 0;  // of flash_decode's launch (see there)
  int n_tiles = 0;   // the workspace's, of flash_prefill over the rows behind those
};

class Pipeline {
 public:
  Pipeline(const HParams& hparams, int n_vocab_used, const Model& model, const KvCache& kv,
           Workspace& workspace)
      : h_(hparams), n_vocab_used_(n_vocab_used), m_(model), kv_(kv), w_(workspace) {}

  // Runs the rows that the workspace's ids, pos, first_slot and tiles describe through all layers: w.x holds
  // the residual stream afterwards, w.bad_layer the first bad layer of each row. after_layer, where there is
  // one, is called when a layer's work has been put on the stream.
  void layers(const RowGroup& group, cudaStream_t stream, const std::function<void(int)>& after_layer = {});
  // Logits and choices of the rows listed in w.wanted[first .. first + n), n <= kMaxHeadRows, into w.logits
  // and w.choices[first ..].
  void head(int first, int n, cudaStream_t stream);

  void set_profiler(Profiler* profiler) { profiler_ = profiler; }
  Profiler* profiler() const { return profiler_; }

 private:
  void layer(int l, const RowGroup& group, cudaStream_t stream);
  // w.x's rows (those listed in `rows`, or all) normalised for the product with `reader`.
  void norm(const float* weight, const FusedWeight& reader, int layer_before, int n_rows, const int32_t* rows,
            cudaStream_t stream);
  void attend(int l, const RowGroup& group, cudaStream_t stream);
  void attend_alone(int l, int first, int n, int n_splits, cudaStream_t stream);
  // out = x * weight^T in the regime of n_rows, by the epilogue's rules; x is w.normed where it is null.
  struct Product {
    const char* name;
    const FusedWeight& weight;
    const half* x = nullptr;
    GemmEpilogue epilogue = GemmEpilogue::kStore;
    float* out_f32 = nullptr;
    half* out_f16 = nullptr;
    float scale = 1.0f;
  };
  void product(const Product& p, int n_rows, cudaStream_t stream);
  bool uses_gemm(const FusedWeight& weight, int n_rows) const;
  void product_gemv(const Product& p, int n_rows, cudaStream_t stream);
  void product_gemm(const Product& p, int n_rows, cudaStream_t stream);

  template <typename Launch>
  void timed(const char* name, double flops, double bytes, cudaStream_t stream, Launch&& launch) {
    if (profiler_ != nullptr) profiler_->begin(stream);
    launch();
    if (profiler_ != nullptr) profiler_->end(name, flops, bytes, stream);
  }

  const HParams& h_;
  int n_vocab_used_;
  const Model& m_;
  const KvCache& kv_;
  Workspace& w_;
  Profiler* profiler_ = nullptr;
};

}  // namespace minfer::cu
