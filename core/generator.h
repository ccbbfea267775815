// Prompt ids in, completion out: prefill, then decoding until something stops it.
#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "core/completion.h"

namespace minfer {

// Receives the completion piece by piece: whole UTF-8 characters, and at the very end whatever bytes are
// left.
using TextSink = std::function<void(std::string_view)>;

// Throws Error(kUsage) where the prompt is empty or does not fit the context (both numbers), Error(kDevice)
// where the KV cache does not fit, Error(kRuntime) where logits are not finite; whatever the sink throws
// passes through. The sequence is freed in every case. On Ctrl-C it returns what is there.
Generation generate(Engine& engine, const Tokenizer& tokenizer, std::span<const TokenId> prompt,
                    const GenerateOptions& options, const TextSink& sink);

}  // namespace minfer
