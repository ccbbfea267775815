// The model in plain f32 C++: what runs where no GPU is, and the oracle for every kernel.
#pragma once

#include <memory>

#include "core/engine.h"
#include "gguf/reader.h"

namespace minfer {

struct ReferenceOptions {
  int n_threads = 0;         // 0: one a processor this process may use
  int32_t n_vocab_used = 0;  // rows of the head that argmax may choose: the tokenizer's vocabulary; 0: all
};

// Weights stay quantized in the file's memory, which must outlive the engine. Throws Error(kModelFile).
std::unique_ptr<Engine> make_reference_engine(const gguf::Reader& file, const ReferenceOptions& options);

}  // namespace minfer
