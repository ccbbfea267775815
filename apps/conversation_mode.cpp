#include "apps/modes.h"

namespace minfer {

ExitCode run_conversation(const Options&) {
  throw Error(ExitCode::kRuntime, "--conversation: being written");
}

}  // namespace minfer
