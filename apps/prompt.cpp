#include "apps/prompt.h"

#include <nlohmann/json.hpp>

#include "apps/input.h"
#include "core/error.h"

namespace minfer {
namespace {

RenderedPrompt render_turn(const Options& options, const std::string& text,
                           const ChatTemplate& chat_template) {
  auto messages = nlohmann::ordered_json::array();
  if (const auto system = read_system_prompt(options)) {
    messages.push_back({{"role", "system"}, {"content", *system}});
  }
  messages.push_back({{"role", "user"}, {"content", text}});
  RenderedPrompt prompt = chat_template.render(messages);
  if (options.prefill_response) append_literal(prompt, *options.prefill_response);
  return prompt;
}

}  // namespace

std::optional<ChatTemplate> load_chat_template(const Options& options, const gguf::Reader& file,
                                               const Tokenizer& tokenizer) {
  if (!options.chat_template) return ChatTemplate::from_metadata(file.metadata(), tokenizer);
  const std::string flag = "--chat-template";
  return ChatTemplate::for_tokenizer(read_input(flag, *options.chat_template),
                                     flag + " " + *options.chat_template, tokenizer);
}

ChatTemplate require_chat_template(const Options& options, const gguf::Reader& file,
                                   const Tokenizer& tokenizer) {
  auto chat_template = load_chat_template(options, file, tokenizer);
  if (!chat_template) {
    throw Error(ExitCode::kUsage,
                "--chat: the model file holds no chat template; --chat-template FILE gives one");
  }
  return std::move(*chat_template);
}

std::optional<std::string> read_system_prompt(const Options& options) {
  if (options.system_file) return read_input("--system-file", *options.system_file);
  return options.system_prompt;
}

Prompt make_prompt(const Options& options, const std::string& text, const gguf::Reader& file,
                   const Tokenizer& tokenizer) {
  if (!options.chat) return {text, tokenizer.encode(text, {.parse_special = options.parse_special})};
  RenderedPrompt prompt = render_turn(options, text, require_chat_template(options, file, tokenizer));
  std::vector<TokenId> ids = encode(tokenizer, prompt);
  return {std::move(prompt.text), std::move(ids)};
}

}  // namespace minfer
