// The CUDA engine: the model's weights resident on the device, and the fixed pipeline of kernels over them.
#pragma once

#include <cstdint>
#include <memory>

#include "core/engine.h"
#include "gguf/reader.h"

namespace minfer::cu {

enum class F16Cache {
  kAuto,  // on where it fits
  kOn,    // every matrix in f16 beside its blocks: the prefill's GEMM reads it
  kOff,   // blocks only; each matrix is decoded into a scratch ahead of its GEMM
};

struct CudaOptions {
  int32_t n_kv_tokens = 0;        // KV slots of all sequences together
  int32_t n_kv_tokens_least = 0;  // at least so many where not all fit; 0: all
  int32_t n_vocab_used = 0;  // rows of the head that argmax may choose: the tokenizer's vocabulary; 0: all
  F16Cache f16_cache = F16Cache::kAuto;
  bool progress = false;  // a progress bar on stderr while loading
};

class Profiler;

// What the CUDA engine is beside an Engine (and a LayerProbed): its device time can be measured op by op.
class Profiled {
 public:
  virtual ~Profiled() = default;
  // Null: nothing is measured. The profiler must outlive its use.
  virtual void set_profiler(Profiler* profiler) = 0;
};

// Loads the model onto the first device. Needed and free memory are logged before anything is allocated.
// Throws Error(kDevice) where it does not fit (what would is named), Error(kModelFile) for a model that
// cannot run.
std::unique_ptr<Engine> make_cuda_engine(const gguf::Reader& file, const CudaOptions& options);

}  // namespace minfer::cu
