#include "core/generator.h"

#include "core/session.h"

namespace minfer {

Generation generate(Engine& engine, const Tokenizer& tokenizer, std::span<const TokenId> prompt,
                    const GenerateOptions& options, const TextSink& sink) {
  const int32_t n_tokens = kv_tokens_needed(engine.hparams(), static_cast<int32_t>(prompt.size()), options);
  return Session(engine, tokenizer, n_tokens).generate(prompt, options, sink);
}

}  // namespace minfer
