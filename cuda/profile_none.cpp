#include "core/error.h"
#include "cuda/profile.h"

namespace minfer::cu {

Profile profile_prefill(Engine&, const ModelCost&, std::span<const TokenId>) {
  throw Error(ExitCode::kDevice, "--profile: this binary was built without CUDA");
}

Profile profile_decode(Engine&, const ModelCost&, std::span<const TokenId>) {
  throw Error(ExitCode::kDevice, "--profile: this binary was built without CUDA");
}

}  // namespace minfer::cu
