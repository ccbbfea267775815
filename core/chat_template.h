// Messages to the text that a model was trained to answer, by its own template, and to token ids.
#pragma once

#include <ctime>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/tokenizer/tokenizer.h"
#include "gguf/metadata.h"

namespace minfer {

namespace jinja {
class Template;
}

struct RenderedPrompt {
  std::string text;
  std::vector<ByteRange> literal;  // what users wrote: ascending, disjoint; special tokens in it stay text
};

// Puts text that is no scaffolding at the end: what an answer begins with.
void append_literal(RenderedPrompt& prompt, std::string_view text);

struct RenderOptions {
  bool add_generation_prompt = true;
  std::optional<std::tm> now;                         // what strftime_now sees; nothing: the local time
  const nlohmann::ordered_json* variables = nullptr;  // an object: further variables (tools, ...)
};

class ChatTemplate {
 public:
  // `name` says in errors which template it is ("tokenizer.chat_template", a file). Throws Error(kModelFile),
  // one line with line and column, where the source cannot be parsed.
  ChatTemplate(std::string_view source, std::string name, std::string bos_token, std::string eos_token);
  // With the texts of the tokenizer's BOS and EOS.
  static ChatTemplate for_tokenizer(std::string_view source, std::string name, const Tokenizer& tokenizer);
  // The file's tokenizer.chat_template; nothing where it has none. Throws gguf::Error where it is no string.
  static std::optional<ChatTemplate> from_metadata(const gguf::Metadata& metadata,
                                                   const Tokenizer& tokenizer);
  ~ChatTemplate();
  ChatTemplate(ChatTemplate&&) noexcept;

  // messages: an array of objects with role and content, further fields as the template knows them. All their
  // strings are users' text but for roles, which templates make tokens of ('<|' + role + '|>'). Throws
  // Error(kUsage): what the template itself raises, or its fault with line and column, or a limit.
  RenderedPrompt render(const nlohmann::ordered_json& messages, const RenderOptions& options = {}) const;

 private:
  std::unique_ptr<jinja::Template> template_;
  std::string name_, bos_token_, eos_token_;
};

// Token ids of a rendered prompt: special tokens in the scaffolding, none in users' text, BOS where the file
// asks for it and the template has not written it. Never an EOS at the end, whatever the file asks for: the
// answer is to come.
std::vector<TokenId> encode(const Tokenizer& tokenizer, const RenderedPrompt& prompt);

}  // namespace minfer
