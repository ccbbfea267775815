#include "apps/conversation.h"

#include <spdlog/spdlog.h>

#include <string_view>

#include "apps/output.h"
#include "apps/replace_file.h"
#include "apps/terminal/characters.h"
#include "apps/timings.h"
#include "gguf/error.h"

namespace minfer {
namespace {

constexpr const char* kClearHint = "/clear forgets the conversation so far";

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\n";
  const size_t begin = text.find_first_not_of(kSpaces);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpaces) + 1 - begin);
}

// What answers a command or a key: part of the dialogue, -q or not.
void say(const std::string& line) {
  write_stdout(line + "\n");
}

}  // namespace

struct Conversation::Command {
  std::string_view name;
  const char* help;  // null: another name of the command before it
  bool (Conversation::*run)(const std::string& argument);
};

const Conversation::Command Conversation::kCommands[] = {
    {"/help", "what there is", &Conversation::help},
    {"/clear", "forget the conversation; the system message stays", &Conversation::clear},
    {"/regen", "answer the last message again, with another seed where one is drawn from",
     &Conversation::answer_again},
    {"/save", "FILE: write the messages as JSON", &Conversation::save},
    {"/quit", "leave; also /exit, /bye and Ctrl-D", &Conversation::quit},
    {"/exit", nullptr, &Conversation::quit},
    {"/bye", nullptr, &Conversation::quit},
};

Conversation::Conversation(Engine& engine, const Tokenizer& tokenizer, const ChatTemplate& chat_template,
                           const ConversationOptions& options)
    : options_(options),
      session_(engine, tokenizer, options.generation.n_ctx),
      history_(chat_template, tokenizer, options.system_prompt, options.prefill) {}

ExitCode Conversation::run(LineReader& reader) {
  bool interrupted_before = false;
  for (;;) {
    scope_.clear();
    throw_if_interrupted();
    const Typed typed = reader.read(scope_);
    switch (typed.kind) {
      case Typed::Kind::kEnd:
        return ExitCode::kOk;
      case Typed::Kind::kInterrupted:
        if (interrupted_before) return ExitCode::kInterrupted;
        interrupted_before = true;
        say("Ctrl-C again, or Ctrl-D, leaves");
        break;
      case Typed::Kind::kMessage:
        interrupted_before = false;
        if (!take(typed.text)) return ExitCode::kOk;
    }
  }
}

bool Conversation::take(const std::string& typed) {
  if (trimmed(typed).empty()) return true;
  const bool is_command = typed.starts_with('/');
  if (is_command && !typed.starts_with("//")) return obey(typed);
  answer(is_command ? typed.substr(1) : typed);
  return true;
}

bool Conversation::obey(const std::string& typed) {
  const std::string name = typed.substr(0, typed.find_first_of(" \t\n"));
  for (const Command& command : kCommands) {
    if (command.name == name) return (this->*command.run)(std::string(trimmed(typed.substr(name.size()))));
  }
  spdlog::error("{}: no such command; /help lists them, and // at the beginning sends a /",
                gguf::printable(name));
  return true;
}

bool Conversation::help(const std::string&) {
  std::string text;
  for (const Command& command : kCommands) {
    if (command.help) text += fmt::format("{:<11}{}\n", command.name, command.help);
  }
  text +=
      "//...      send a message that begins with /\n"
      "\"\"\"        begin a message of several lines, and end it; or Alt-Enter, Ctrl-J, or \\ at a line's "
      "end\n"
      "Ctrl-C     stop an answer; clear what is typed; twice, leave\n";
  write_stdout(text);
  return true;
}

bool Conversation::clear(const std::string&) {
  history_.clear();
  say("forgotten");
  return true;
}

bool Conversation::answer_again(const std::string&) {
  if (auto turn = history_.take_last()) {
    if (!answer(turn->message)) history_.put_back(std::move(*turn));
  } else {
    spdlog::error("/regen: nothing was answered yet");
  }
  return true;
}

bool Conversation::save(const std::string& path) {
  if (path.empty()) {
    spdlog::error("/save: needs a file to write to");
    return true;
  }
  const nlohmann::ordered_json& messages = history_.messages();
  try {
    const bool replaced = replace_file(
        path, messages.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
    say(fmt::format("{} messages written to {}{}", messages.size(), gguf::printable(path),
                    replaced ? ", in place of what it held" : ""));
  } catch (const Error& error) {
    spdlog::error("/save {}", gguf::printable(error.what()));
  }
  return true;
}

bool Conversation::quit(const std::string&) {
  return false;
}

bool Conversation::answer(const std::string& message) {
  ChatHistory::Prompt prompt;
  std::string text;
  Generation run;
  try {
    prompt = history_.ask(message);
  } catch (const Error& error) {  // the template's own refusal
    spdlog::error("{}", gguf::printable(error.what()));
    return false;
  }
  try {
    run = generate(prompt.ids, text);
  } catch (const Error& error) {
    if (error.code() != ExitCode::kUsage) throw;
    spdlog::error("{}; {}", error.what(), kClearHint);
    return false;
  }
  if (run.ids.empty()) {
    spdlog::info("stopped before the answer began");
    return false;
  }
  history_.add(message, prompt, text, run.ids);
  if (run.reason == FinishReason::kContextFull) {
    spdlog::warn("stopped: {}, {} tokens; {}", finish_reason_name(run.reason), options_.generation.n_ctx,
                 kClearHint);
  } else if (run.reason != FinishReason::kStop) {
    spdlog::info("stopped: {}", finish_reason_name(run.reason));
  }
  return true;
}

Generation Conversation::generate(const std::vector<TokenId>& prompt, std::string& text) {
  GenerateOptions options = options_.generation;
  if (n_answers_ > 0) options.sampling.seed = derive_seed(options.sampling.seed, n_answers_);
  char last = '\n';
  const auto show = [&](std::string_view piece) {
    if (piece.empty()) return;
    write_stdout(shown_text(piece));
    last = piece.back();
  };
  Generation run = session_.generate(prompt, options, [&](std::string_view piece) {
    if (text.empty()) show(history_.prefill());
    show(piece);
    text += piece;
  });
  if (text.empty() && !run.ids.empty()) show(history_.prefill());
  if (last != '\n') write_stdout("\n");
  n_answers_ += 1;
  if (options_.timings) log_timings(Timings(run, std::nullopt, run.prefill_seconds + run.decode_seconds));
  return run;
}

}  // namespace minfer
