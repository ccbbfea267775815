// --device: which engine runs the model.
#pragma once

#include <memory>

#include "apps/options.h"
#include "core/engine.h"
#include "core/tokenizer/tokenizer.h"
#include "gguf/reader.h"

namespace minfer {

// Says on stderr what was chosen and why. `file` must outlive the engine. Throws Error(kDevice) where
// --device cuda cannot be had: it never falls back to the CPU.
std::unique_ptr<Engine> make_engine(const Options& options, const gguf::Reader& file,
                                    const Tokenizer& tokenizer);

// What must fail before a large file is touched. Throws like make_engine.
void check_device(const Options& options);

}  // namespace minfer
