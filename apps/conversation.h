// The turns of a conversation at a terminal: messages, commands, answers.
#pragma once

#include <optional>
#include <string>

#include "apps/terminal/line_reader.h"
#include "core/cancel.h"
#include "core/chat_history.h"
#include "core/error.h"
#include "core/session.h"

namespace minfer {

struct ConversationOptions {
  GenerateOptions generation;  // n_ctx is set
  std::optional<std::string> system_prompt;
  std::string prefill;   // what every answer begins with
  bool timings = false;  // are logged for every answer
};

class Conversation {
 public:
  // All must outlive it. Throws Error(kDevice) where the KV cache does not fit.
  Conversation(Engine& engine, const Tokenizer& tokenizer, const ChatTemplate& chat_template,
               const ConversationOptions& options);

  // Until the user leaves. Throws what ends the process.
  ExitCode run(LineReader& reader);

 private:
  struct Command;
  static const Command kCommands[];

  // These return whether the conversation goes on.
  bool take(const std::string& typed);
  bool obey(const std::string& typed);
  bool help(const std::string&);
  bool clear(const std::string&);
  bool answer_again(const std::string&);
  bool save(const std::string& path);
  bool quit(const std::string&);

  // False: no token of an answer came, and nothing of the message stays.
  bool answer(const std::string& message);
  // Shows it as it comes. `text` is what was shown.
  Generation generate(const std::vector<TokenId>& prompt, std::string& text);

  AnswerScope scope_;
  ConversationOptions options_;
  Session session_;
  ChatHistory history_;
  uint64_t n_answers_ = 0;
};

}  // namespace minfer
