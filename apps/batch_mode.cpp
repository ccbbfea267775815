#include "apps/modes.h"

namespace minfer {

ExitCode run_batch(const Options&) {
  throw Error(ExitCode::kRuntime, "--batch: being written");
}

}  // namespace minfer
