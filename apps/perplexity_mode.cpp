#include "apps/modes.h"

namespace minfer {

ExitCode run_perplexity(const Options&) {
  throw Error(ExitCode::kRuntime, "--perplexity: being written");
}

}  // namespace minfer
