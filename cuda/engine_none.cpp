#include "core/error.h"
#include "cuda/engine.h"

namespace minfer::cu {

std::unique_ptr<Engine> make_cuda_engine(const gguf::Reader&, const CudaOptions&) {
  throw Error(ExitCode::kDevice, "this binary was built without CUDA");
}

}  // namespace minfer::cu
