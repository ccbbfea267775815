#include "apps/device.h"

#include <spdlog/spdlog.h>

#include "core/error.h"
#include "core/reference/reference_engine.h"
#include "cuda/engine.h"
#include "cuda/runtime/device_info.h"

namespace minfer {

Device choose_device(const Options& options) {
  if (options.device == DeviceChoice::kCpu) return {.is_cuda = false, .why = ""};
  const std::string why_not = cu::why_unusable();
  if (options.device == DeviceChoice::kAuto) {
    return {.is_cuda = why_not.empty(), .why = why_not.empty() ? "the card is usable" : why_not};
  }
  if (!why_not.empty()) throw Error(ExitCode::kDevice, "--device cuda: " + why_not);
  return {.is_cuda = true, .why = ""};
}

std::unique_ptr<Engine> make_cpu_engine(const Options& options, const gguf::Reader& file,
                                        const Tokenizer& tokenizer) {
  return make_reference_engine(file, {.n_threads = options.n_threads, .n_vocab_used = tokenizer.n_vocab()});
}

std::unique_ptr<Engine> make_engine(const Device& device, const Options& options, const gguf::Reader& file,
                                    const Tokenizer& tokenizer, int32_t n_kv_tokens,
                                    int32_t n_kv_tokens_least) {
  auto engine = device.is_cuda ? cu::make_cuda_engine(file, {.n_kv_tokens = n_kv_tokens,
                                                             .n_kv_tokens_least = n_kv_tokens_least,
                                                             .n_vocab_used = tokenizer.n_vocab(),
                                                             .f16_cache = options.f16_cache,
                                                             .progress = !options.quiet})
                               : make_cpu_engine(options, file, tokenizer);
  if (!device.is_cuda && options.f16_cache != cu::F16Cache::kAuto) {
    spdlog::warn("--f16-cache: the CPU engine has none");
  }
  spdlog::info("device: {}{}", engine->description(),
               device.why.empty() ? "" : " (auto: " + device.why + ")");
  return engine;
}

}  // namespace minfer
