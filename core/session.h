// A sequence that remembers which tokens it holds, so that a prompt which begins alike is prefilled only from
// where it differs: the turns of a conversation.
#pragma once

#include <span>
#include <vector>

#include "core/completion.h"
#include "core/generator.h"
#include "core/sequence.h"

namespace minfer {

class Session {
 public:
  // Room for n_tokens in all. Throws Error(kDevice) where there is none.
  Session(Engine& engine, const Tokenizer& tokenizer, int32_t n_tokens);

  // As minfer::generate(), in this sequence. After an interruption the sequence keeps what was computed.
  // Throws Error(kUsage) where prompt and completion may need more than the session's room (both numbers).
  Generation generate(std::span<const TokenId> prompt, const GenerateOptions& options, const TextSink& sink);

  // Tokens whose KV is there.
  const std::vector<TokenId>& held() const { return held_; }

 private:
  RowResult append(std::span<const TokenId> ids, Want want);
  void run(std::span<const TokenId> prompt, Completion& completion, const TextSink& sink);

  Engine& engine_;
  const Tokenizer& tokenizer_;
  int32_t n_tokens_;
  Sequence sequence_;
  std::vector<TokenId> held_;
};

}  // namespace minfer
