// From the flags to what the model is asked: raw text, or one turn through the chat template.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/options.h"
#include "core/chat_template.h"
#include "core/tokenizer/tokenizer.h"
#include "gguf/reader.h"

namespace minfer {

// The template of --chat-template, else the model's own; nothing where there is neither. Throws as
// ChatTemplate does, and Error(kUsage) for a file that cannot be read.
std::optional<ChatTemplate> load_chat_template(const Options& options, const gguf::Reader& file,
                                               const Tokenizer& tokenizer);

// The same for what cannot do without: Error(kUsage) where there is none.
ChatTemplate require_chat_template(const Options& options, const gguf::Reader& file,
                                   const Tokenizer& tokenizer);

// -sys or --system-file; nothing where neither is given.
std::optional<std::string> read_system_prompt(const Options& options);

struct Prompt {
  std::string text;  // what was tokenized, for --display-prompt
  std::vector<TokenId> ids;
};

// `text` is what read_prompt() gave. With --chat: system message, one user's turn, and what the answer begins
// with (--prefill-response). Throws Error(kUsage) where there is no template, or the template refuses the
// messages.
Prompt make_prompt(const Options& options, const std::string& text, const gguf::Reader& file,
                   const Tokenizer& tokenizer);

}  // namespace minfer
