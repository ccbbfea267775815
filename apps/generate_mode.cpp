#include <spdlog/spdlog.h>
#include <unistd.h>

#include "apps/device.h"
#include "apps/generation_options.h"
#include "apps/input.h"
#include "apps/modes.h"
#include "apps/output.h"
#include "apps/prompt.h"
#include "apps/terminal/characters.h"
#include "apps/timings.h"
#include "core/generator.h"
#include "core/json_line.h"
#include "core/logprobs_json.h"
#include "core/process.h"

namespace minfer {
namespace {

// Where the answer goes: to stdout as it comes, or kept for a JSON object. A terminal gets no control
// characters, which would be commands to it.
class Answer {
 public:
  explicit Answer(bool kept) : kept_(kept) {}

  void add(std::string_view piece) {
    if (kept_) {
      text_ += piece;
    } else if (!piece.empty()) {
      write_stdout(on_terminal_ ? shown_text(piece) : std::string(piece));
      last_ = piece.back();
    }
  }
  // What follows on a terminal begins on a line of its own; a file or a pipe gets the answer and nothing
  // else.
  void end() const {
    if (!kept_ && last_ != '\n' && on_terminal_) write_stdout("\n");
  }
  const std::string& text() const { return text_; }

 private:
  bool kept_;
  bool on_terminal_ = ::isatty(STDOUT_FILENO) == 1;
  char last_ = '\n';
  std::string text_;
};

std::string json_answer(const Options& options, const GenerateOptions& generation, const Tokenizer& tokenizer,
                        const Prompt& prompt, const std::string& text, const Generation& run,
                        const Timings& timings) {
  nlohmann::ordered_json json;
  if (options.display_prompt) json["prompt"] = prompt.text;
  json["text"] = text;
  json["finish_reason"] = finish_reason_code(run.reason);
  json["usage"] = {{"prompt_tokens", run.n_prompt}, {"completion_tokens", run.ids.size()}};
  if (generation.sampling.temp > 0) json["seed"] = generation.sampling.seed;
  if (generation.n_logprobs) json["logprobs"] = logprobs_json(tokenizer, run.logprobs);
  json["timings"] = to_json(timings);
  return json_line(json);
}

void hint_at_chat(const Options& options, const gguf::Reader& file) {
  if (options.chat || !file.metadata().has("tokenizer.chat_template")) return;
  spdlog::info("hint: this model was trained to answer chats; --chat puts the prompt into its chat template");
}

}  // namespace

ExitCode run_generate(const Options& options) {
  const Device device = choose_device(options);
  const std::string input = read_prompt(options);
  // Waiting for a pipe is no loading.
  const bool from_stdin = options.prompt == "-" || options.prompt_file == "-";
  const double waited = from_stdin ? seconds_since_start() : 0;
  spdlog::debug("loading {}", options.model);
  const gguf::Reader file = gguf::Reader::open(options.model);
  const auto tokenizer = Tokenizer::from_metadata(file.metadata(), {.pretokenizer = options.pretokenizer});
  file.prefetch();
  const Prompt prompt = make_prompt(options, input, file, *tokenizer);
  hint_at_chat(options, file);
  const HParams hparams = HParams::read(file);
  const GenerateOptions generation = generation_options(options, hparams);
  // Made once more by generate(): what cannot be is refused before the weights are read.
  const int32_t n_kv_tokens = Completion(hparams, *tokenizer, prompt.ids, generation).n_kv_tokens();
  const auto engine = make_engine(device, options, file, *tokenizer, n_kv_tokens);
  const double load_seconds = seconds_since_start() - waited;

  Answer answer(options.json);
  // The prompt's text ends with the beginning of the answer that was asked for, which belongs to both.
  if (options.display_prompt && !options.json) {
    answer.add(prompt.text);
  } else if (options.prefill_response) {
    answer.add(*options.prefill_response);
  }
  spdlog::debug("prefill of {} tokens", prompt.ids.size());
  const Generation run = generate(*engine, *tokenizer, prompt.ids, generation,
                                  [&](std::string_view piece) { answer.add(piece); });
  answer.end();
  const Timings timings(run, load_seconds, seconds_since_start() - waited);
  if (options.json)
    write_stdout(json_answer(options, generation, *tokenizer, prompt, answer.text(), run, timings));
  spdlog::info("stopped: {}", finish_reason_name(run.reason));
  log_timings(timings);
  return run.reason == FinishReason::kInterrupted ? ExitCode::kInterrupted : ExitCode::kOk;
}

}  // namespace minfer
