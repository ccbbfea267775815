// From a request to the tokens that the model is given.
#pragma once

#include <ctime>
#include <optional>
#include <string>
#include <vector>

#include "core/batch_file/request.h"
#include "core/chat_template.h"
#include "core/tokenizer/tokenizer.h"

namespace minfer {

struct PromptRules {
  const ChatTemplate* chat_template = nullptr;  // none: requests that need one are refused
  bool chat = false;                            // prompts are users' turns; else raw text
  std::optional<std::string> system_prompt;     // of chats that bring none of their own
  std::string prefill_response;                 // what answers in a chat begin with
  bool parse_special = false;                   // of raw text
  std::tm now{};                                // the same for all, whenever their turn comes
};

// Whether it goes through the template: messages do; prompts do where rules.chat says so, but for those of
// OpenAI's text completions, which are raw by definition.
bool is_chat(const BatchRequest& request, const PromptRules& rules);

// Throws Error(kUsage): no template, or the template refuses the messages.
std::vector<TokenId> encode_request(const BatchRequest& request, const PromptRules& rules,
                                    const Tokenizer& tokenizer);

}  // namespace minfer
