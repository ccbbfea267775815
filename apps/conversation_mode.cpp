#include <spdlog/spdlog.h>
#include <unistd.h>

#include "apps/conversation.h"
#include "apps/device.h"
#include "apps/generation_options.h"
#include "apps/modes.h"
#include "apps/prompt.h"

namespace minfer {
namespace {

void require_terminal() {
  if (::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1) return;
  throw Error(
      ExitCode::kUsage,
      "--chat without -p or -f is a conversation, which needs a terminal on standard input and output; "
      "-p TEXT, -p - (standard input) or -f FILE give a single turn");
}

}  // namespace

ExitCode run_conversation(const Options& options) {
  require_terminal();
  const Device device = choose_device(options);
  const gguf::Reader file = gguf::Reader::open(options.model);
  const auto tokenizer = Tokenizer::from_metadata(file.metadata(), {.pretokenizer = options.pretokenizer});
  file.prefetch();
  const ChatTemplate chat_template = require_chat_template(options, file, *tokenizer);
  const ConversationOptions conversation{.generation = generation_options(options, HParams::read(file)),
                                         .system_prompt = read_system_prompt(options),
                                         .prefill = options.prefill_response.value_or(""),
                                         .timings = options.verbose};
  const auto reader = make_line_reader();  // before the weights are loaded: what is typed meanwhile is kept
  const auto engine = make_engine(device, options, file, *tokenizer, conversation.generation.n_ctx);
  spdlog::info("{}: /help lists the commands, Ctrl-D leaves",
               gguf::printable(file.metadata().get_string("general.name").value_or(file.name())));
  return Conversation(*engine, *tokenizer, chat_template, conversation).run(*reader);
}

}  // namespace minfer
