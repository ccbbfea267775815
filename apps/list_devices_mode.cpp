#include "apps/modes.h"

namespace minfer {

ExitCode run_list_devices(const Options&) {
  throw Error(ExitCode::kRuntime, "--list_devices: being written");
}

}  // namespace minfer
