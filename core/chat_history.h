// A conversation as its messages and as the tokens that stand for it. Each prompt begins with the very tokens
// that the turn before left in the KV cache, wherever the template renders earlier turns as before.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/chat_template.h"
#include "core/tokenizer/tokenizer.h"

namespace minfer {

class ChatHistory {
 private:
  // The beginning of every prompt to come, unless the template renders it otherwise.
  struct Known {
    std::string text;
    std::vector<TokenId> ids;
    TokenId end = -1;  // ended the answer; stands behind ids only where the template goes on with its text
  };

 public:
  struct Turn {
    std::string message;
    nlohmann::ordered_json answer;
    Known known;
  };

  // Every answer begins with `prefill`. The template and the tokenizer must outlive this.
  ChatHistory(const ChatTemplate& chat_template, const Tokenizer& tokenizer,
              const std::optional<std::string>& system, std::string prefill = {});

  struct Prompt {
    std::string text;
    std::vector<TokenId> ids;
  };
  // What leads to the answer to a further message of the user's. Nothing changes yet. Throws as
  // ChatTemplate::render().
  Prompt ask(const std::string& message) const;
  // Takes the message and the answer in: `ids` as generated, `text` what was shown of them. The prefill is
  // put before it.
  void add(const std::string& message, const Prompt& prompt, std::string_view text,
           std::span<const TokenId> ids);

  // Takes the last message and its answer out; nothing where there is none.
  std::optional<Turn> take_last();
  // Behind what there is now.
  void put_back(Turn turn);
  // All but the system message.
  void clear();

  const nlohmann::ordered_json& messages() const { return messages_; }
  const std::string& prefill() const { return prefill_; }

 private:
  static void append_answer(const Tokenizer& tokenizer, std::string_view text, std::span<const TokenId> ids,
                            Known& known);

  const ChatTemplate& template_;
  const Tokenizer& tokenizer_;
  std::string prefill_;
  nlohmann::ordered_json messages_ = nlohmann::ordered_json::array();
  size_t n_system_ = 0;       // messages that clear() keeps
  std::vector<Known> known_;  // one a turn
};

}  // namespace minfer
