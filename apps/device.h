// --device: which engine runs the model.
#pragma once

#include <memory>
#include <string>

#include "apps/options.h"
#include "core/engine.h"
#include "core/tokenizer/tokenizer.h"
#include "gguf/reader.h"

namespace minfer {

struct Device {
  bool is_cuda = false;
  std::string why;  // what decided, one phrase; empty where the user did
};

// Looks at the card, not at the model: what must fail before a large file is touched. Throws Error(kDevice)
// where --device cuda cannot be had: it never falls back to the CPU.
Device choose_device(const Options& options);

// Says on stderr what runs and why. n_kv_tokens: KV slots of all sequences together, which the CUDA engine
// reserves at once; where memory is short it takes fewer, down to n_kv_tokens_least (0: n_kv_tokens). `file`
// must outlive the engine. Throws Error(kDevice) where the model does not fit.
std::unique_ptr<Engine> make_engine(const Device& device, const Options& options, const gguf::Reader& file,
                                    const Tokenizer& tokenizer, int32_t n_kv_tokens,
                                    int32_t n_kv_tokens_least = 0);

// The CPU engine, whatever the device: what others are held against.
std::unique_ptr<Engine> make_cpu_engine(const Options& options, const gguf::Reader& file,
                                        const Tokenizer& tokenizer);

}  // namespace minfer
