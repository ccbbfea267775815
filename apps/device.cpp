#include "apps/device.h"

#include <spdlog/spdlog.h>

#include "core/error.h"
#include "core/reference/reference_engine.h"
#include "cuda/runtime/device_info.h"

namespace minfer {
namespace {

// Why no CUDA engine can run here.
std::string why_not_cuda() {
  const cu::Devices devices = cu::list_devices();
  if (devices.found.empty()) return devices.why_none;
  return devices.found.front().name + " is there, but this version of minfer has no CUDA engine yet";
}

}  // namespace

void check_device(const Options& options) {
  if (options.device == DeviceChoice::kCuda)
    throw Error(ExitCode::kDevice, "--device cuda: " + why_not_cuda());
}

std::unique_ptr<Engine> make_engine(const Options& options, const gguf::Reader& file,
                                    const Tokenizer& tokenizer) {
  check_device(options);
  auto engine =
      make_reference_engine(file, {.n_threads = options.n_threads, .n_vocab_used = tokenizer.n_vocab()});
  if (options.device == DeviceChoice::kAuto) {
    spdlog::info("device: {} (auto: {})", engine->description(), why_not_cuda());
  } else {
    spdlog::info("device: {}", engine->description());
  }
  return engine;
}

}  // namespace minfer
