#include "core/batch_file/prompt.h"

#include "core/error.h"

namespace minfer {
namespace {

using Json = nlohmann::ordered_json;

Json messages_of(const BatchRequest& request, const PromptRules& rules) {
  Json messages = request.messages;
  if (messages.is_null()) messages = Json::array({{{"role", "user"}, {"content", request.prompt}}});
  const Json& role = messages.front().at("role");
  if (rules.system_prompt && role != "system" && role != "developer") {
    messages.insert(messages.begin(), Json{{"role", "system"}, {"content", *rules.system_prompt}});
  }
  return messages;
}

}  // namespace

bool is_chat(const BatchRequest& request, const PromptRules& rules) {
  return !request.messages.is_null() || (rules.chat && !request.is_openai);
}

std::vector<TokenId> encode_request(const BatchRequest& request, const PromptRules& rules,
                                    const Tokenizer& tokenizer) {
  if (!is_chat(request, rules))
    return tokenizer.encode(request.prompt, {.parse_special = rules.parse_special});
  if (rules.chat_template == nullptr) {
    throw Error(ExitCode::kUsage,
                "messages: the model file holds no chat template; --chat-template FILE gives one");
  }
  RenderedPrompt prompt = rules.chat_template->render(messages_of(request, rules),
                                                      {.add_generation_prompt = request.add_generation_prompt,
                                                       .now = rules.now,
                                                       .variables = &request.template_variables});
  append_literal(prompt, rules.prefill_response);
  return encode(tokenizer, prompt);
}

}  // namespace minfer
