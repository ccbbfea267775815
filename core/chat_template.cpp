#include "core/chat_template.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/error.h"
#include "core/jinja/template.h"

namespace minfer {
namespace {

constexpr const char* kTemplateKey = "tokenizer.chat_template";

std::tm local_time() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  return local;
}

Error fault(ExitCode code, const std::string& name, const jinja::Error& error) {
  if (error.raised()) return {code, name + ": " + error.message()};
  return {code, name + ": line " + std::to_string(error.line()) + ", column " +
                    std::to_string(error.column()) + ": " + error.message()};
}

std::string token_text(const Tokenizer& tokenizer, TokenId id) {
  return tokenizer.token_bytes(id, true);  // empty for an id that is none
}

}  // namespace

void append_literal(RenderedPrompt& prompt, std::string_view text) {
  if (text.empty()) return;
  const size_t begin = prompt.text.size();
  prompt.text += text;
  prompt.literal.push_back({begin, prompt.text.size()});
}

ChatTemplate::ChatTemplate(std::string_view source, std::string name, std::string bos_token,
                           std::string eos_token)
    : name_(std::move(name)), bos_token_(std::move(bos_token)), eos_token_(std::move(eos_token)) {
  try {
    template_ = std::make_unique<jinja::Template>(source);
  } catch (const jinja::Error& error) {
    throw fault(ExitCode::kModelFile, name_, error);
  }
}

ChatTemplate::~ChatTemplate() = default;
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;

ChatTemplate ChatTemplate::for_tokenizer(std::string_view source, std::string name,
                                         const Tokenizer& tokenizer) {
  return {source, std::move(name), token_text(tokenizer, tokenizer.bos_id()),
          token_text(tokenizer, tokenizer.eos_id())};
}

std::optional<ChatTemplate> ChatTemplate::from_metadata(const gguf::Metadata& metadata,
                                                        const Tokenizer& tokenizer) {
  const auto source = metadata.get_string(kTemplateKey);
  if (!source) return std::nullopt;
  return for_tokenizer(*source, kTemplateKey, tokenizer);
}

RenderedPrompt ChatTemplate::render(const nlohmann::ordered_json& messages,
                                    const RenderOptions& options) const {
  const nlohmann::ordered_json variables{{"bos_token", bos_token_},
                                         {"eos_token", eos_token_},
                                         {"add_generation_prompt", options.add_generation_prompt}};
  nlohmann::ordered_json input{{"messages", messages}};
  if (options.variables) input.update(*options.variables);
  try {
    jinja::Rendered rendered = template_->render(input, variables, options.now ? *options.now : local_time());
    return {std::move(rendered.text), std::move(rendered.input)};
  } catch (const jinja::Error& error) {
    throw fault(ExitCode::kUsage, name_, error);
  }
}

std::vector<TokenId> encode(const Tokenizer& tokenizer, const RenderedPrompt& prompt) {
  auto ids =
      tokenizer.encode(prompt.text, {.add_special = false, .parse_special = true, .literal = prompt.literal});
  const TokenId bos = tokenizer.bos_id();
  if (tokenizer.adds_bos() && (ids.empty() || ids.front() != bos)) ids.insert(ids.begin(), bos);
  return ids;
}

}  // namespace minfer
