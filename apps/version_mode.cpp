#include <spdlog/fmt/fmt.h>

#include "apps/modes.h"
#include "apps/output.h"
#include "cuda/runtime/device_info.h"
#include "gguf/isa.h"

namespace minfer {

ExitCode run_version() {
  write_stdout(fmt::format("minfer {} (g++ {}, {}, {})\n", MINFER_VERSION, __VERSION__,
                           cu::toolkit_description(), gguf::isa_name(gguf::isa())));
  return ExitCode::kOk;
}

}  // namespace minfer
