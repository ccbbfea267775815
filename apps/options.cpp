#include "apps/options.h"

#include <algorithm>
#include <string>
#include <vector>

#include "apps/arguments.h"
#include "apps/declare_options.h"
#include "apps/help.h"
#include "apps/option_values.h"
#include "core/error.h"

namespace minfer {
namespace {

constexpr int32_t kDefaultVerified = 32;

// The flags that choose a mode, one at a time.
class Modes {
 public:
  explicit Modes(CLI::App& app) : app_(app) {}
  void add(const std::string& flag, Mode mode, const std::string& help) {
    app_.add_flag(flag, help);
    note(flag, mode);
  }
  // A flag that chooses a mode and takes a value.
  void note(const std::string& flag, Mode mode) { flags_.emplace_back(flag, mode); }
  Mode chosen() const {
    const std::string* first = nullptr;
    Mode mode = Mode::kGenerate;
    for (const auto& [flag, its_mode] : flags_) {
      if (app_.count(flag) == 0) continue;
      if (first != nullptr) throw Error(ExitCode::kUsage, *first + " and " + flag + ": one at a time");
      first = &flag;
      mode = its_mode;
    }
    return mode;
  }

 private:
  CLI::App& app_;
  std::vector<std::pair<std::string, Mode>> flags_;
};

// What belongs to some modes says so in any other.
void check_belongs(const CLI::App& app, Mode mode) {
  using M = std::initializer_list<Mode>;
  const auto only = [&](std::initializer_list<const char*> flags, M modes, const char* names) {
    for (const char* flag : flags) {
      if (app.count(flag) > 0 && std::find(modes.begin(), modes.end(), mode) == modes.end()) {
        throw Error(ExitCode::kUsage, std::string(flag) + ": belongs to " + names);
      }
    }
  };
  only({"--bench-prefill", "--bench-decode", "--bench-batch", "--bench-depth", "--bench-repetitions"},
       {Mode::kBench}, "--bench");
  only({"--profile-prefill"}, {Mode::kProfile}, "--profile");
  only({"--verify-layers"}, {Mode::kVerify}, "--verify");
  only({"--output", "--batch-format", "--batch-delimiter", "--batch-null", "--resume", "--parallel"},
       {Mode::kBatch}, "--batch");
  only({"--display-prompt"}, {Mode::kGenerate}, "a single prompt");
  only({"--temp", "--top-k", "--top-p", "--min-p", "--repeat-penalty", "--repeat-last-n",
        "--presence-penalty", "--frequency-penalty", "--logit-bias", "--seed", "--stop", "--ignore-eos"},
       {Mode::kGenerate, Mode::kConversation, Mode::kBatch}, "completions");
  only({"-n"}, {Mode::kGenerate, Mode::kConversation, Mode::kBatch, Mode::kVerify},
       "completions and --verify");
  only({"-c"},
       {Mode::kGenerate, Mode::kConversation, Mode::kBatch, Mode::kVerify, Mode::kPerplexity, Mode::kInfo},
       "completions, --verify, --perplexity and --info");
  only({"--chat"}, {Mode::kGenerate, Mode::kConversation, Mode::kBatch, Mode::kTokenize},
       "completions and --tokenize");
  only({"--parse-special"}, {Mode::kGenerate, Mode::kBatch, Mode::kTokenize, Mode::kVerify},
       "raw prompts: completions, --tokenize and --verify");
  only({"--logprobs"}, {Mode::kGenerate, Mode::kBatch}, "--batch and a single prompt");
  only({"--json"}, {Mode::kGenerate, Mode::kBench, Mode::kProfile, Mode::kPerplexity, Mode::kListDevices},
       "a single prompt, --bench, --profile, --perplexity and --list-devices");
  only({"-p", "-f", "--trim-newline", "--escape"}, {Mode::kGenerate, Mode::kTokenize, Mode::kVerify},
       "a single prompt, --tokenize and --verify");
}

void read_batch_format(const CLI::App& app, BatchFlags& batch) {
  const bool by_null = app.count("--batch-null") > 0, by_text = app.count("--batch-delimiter") > 0;
  const bool by_name = app.count("--batch-format") > 0;
  if (by_null + by_text + by_name > 1) {
    throw Error(ExitCode::kUsage, "--batch-format, --batch-delimiter and --batch-null: one at a time");
  }
  if (by_null) batch.delimiter.assign(1, '\0');
  if (by_null || by_text) batch.format = BatchFormat::kDelimited;
  if (!by_null && !by_text && !by_name && batch.input.ends_with(".txt")) batch.format = BatchFormat::kLines;
  if (batch.resume && batch.output == "-") {
    throw Error(ExitCode::kUsage, "--resume: needs --output FILE to resume from");
  }
}

// Standard input can be read once.
void check_stdin(const Options& options) {
  const std::pair<const char*, std::string> readers[] = {
      {"-p", options.prompt.value_or("")},
      {"-f", options.prompt_file.value_or("")},
      {"--system-file", options.system_file.value_or("")},
      {"--chat-template", options.chat_template.value_or("")},
      {"--batch", options.batch.input},
      {"--perplexity", options.perplexity_file},
  };
  const char* first = nullptr;
  for (const auto& [flag, value] : readers) {
    if (value != "-") continue;
    if (first != nullptr) {
      throw Error(ExitCode::kUsage,
                  std::string(first) + " - and " + flag + " -: standard input can be read once");
    }
    first = flag;
  }
}

void check_chat(const CLI::App& app, const Options& options) {
  if (options.chat && options.parse_special && options.mode != Mode::kBatch) {
    throw Error(ExitCode::kUsage, "--parse-special: belongs to raw prompts, not to --chat");
  }
  if (options.chat) return;
  // A batch holds chats of its own (messages), which these are for.
  for (const char* flag : {"--system-prompt", "--system-file", "--chat-template"}) {
    if (app.count(flag) > 0 && options.mode != Mode::kBatch)
      throw Error(ExitCode::kUsage, std::string(flag) + ": belongs to --chat");
  }
  if (options.prefill_response) throw Error(ExitCode::kUsage, "--prefill-response: belongs to --chat");
}

void check_prompt(const CLI::App& app, Options& options) {
  if (options.mode != Mode::kGenerate && options.mode != Mode::kTokenize && options.mode != Mode::kVerify)
    return;
  if (!options.prompt && !options.prompt_file) {
    throw Error(ExitCode::kUsage, "no prompt given: -p TEXT, -p - (standard input) or -f FILE");
  }
  if (options.escape && (!options.prompt || *options.prompt == "-")) {
    throw Error(ExitCode::kUsage,
                "--escape: belongs to -p TEXT; files and standard input are taken verbatim");
  }
  if (options.trim_newline && !options.prompt_file && options.prompt != "-") {
    throw Error(ExitCode::kUsage, "--trim-newline: belongs to -f and -p -; -p TEXT has what was typed");
  }
  if (options.mode == Mode::kGenerate && options.generation.n_logprobs && !options.json) {
    throw Error(ExitCode::kUsage, "--logprobs: belongs to --json and --batch");
  }
  if (options.mode == Mode::kVerify) {
    int32_t& n_predict = options.generation.n_predict;
    if (app.count("-n") == 0) n_predict = kDefaultVerified;
    if (n_predict < 0) throw Error(ExitCode::kUsage, "-n -1: --verify needs a number of tokens");
  }
}

// Everything declared since the last call stands under `heading` in the help.
void group(CLI::App& app, const std::string& heading) {
  for (CLI::Option* option : app.get_options()) {
    if (option->get_group() == "Options") option->group(heading);
  }
}

void declare(CLI::App& app, Options& options, Modes& modes) {
  const auto add = [&](void (*flags)(CLI::App&, Options&), const char* heading) {
    flags(app, options);
    group(app, heading);
  };
  app.set_help_flag();  // CLI11's own would print its own
  add(declare_prompt, "Prompt");
  add(declare_chat, "Chat");
  add(declare_generation, "Completion");
  add(declare_sampling, "Sampling");
  add(declare_batch, "Files of prompts");
  modes.note("--batch", Mode::kBatch);
  add(declare_model, "Model and device");
  modes.add("--tokenize", Mode::kTokenize, "Print the prompt's token ids as a JSON array");
  modes.add("--info", Mode::kInfo, "Print what the model file holds and needs");
  add_name(app, "--perplexity", "FILE", options.perplexity_file,
           "Perplexity of a text file, in windows of -c tokens");
  modes.note("--perplexity", Mode::kPerplexity);
  modes.add("--bench", Mode::kBench, "Time prefill and decode on random token ids");
  modes.add("--profile", Mode::kProfile,
            "cuda: where the time of a prefill and a decode step goes, op by op");
  modes.add("--verify", Mode::kVerify,
            "cuda: the prompt and -n tokens (default 32) on both engines; exit 1 where they differ too much");
  modes.add("--list-devices", Mode::kListDevices, "Print the devices that a model can run on");
  modes.add("--version", Mode::kVersion, "Print the version");
  const std::string help = "Print this";
  app.add_flag("-h,--help", help);
  group(app, "Instead of completing");
  add(declare_measuring, "Measuring");
  add(declare_log, "Log");
}

// CLI11 gets every flag by its long name and every value as a word of its own, which it reads in one way
// only.
void take(CLI::App& app, const std::vector<Argument>& arguments) {
  std::vector<std::string> words;
  for (const Argument& argument : arguments) {
    words.push_back("--" + argument.option->get_lnames().front());
    if (argument.value) words.push_back(*argument.value);
  }
  std::reverse(words.begin(), words.end());  // it takes them from the back
  try {
    app.parse(std::move(words));
  } catch (const CLI::ParseError& error) {
    throw Error(ExitCode::kUsage, error.what());
  }
}

}  // namespace

Options parse_options(int argc, char** argv) {
  Options options;
  CLI::App app;
  Modes modes(app);
  declare(app, options, modes);

  const std::vector<Argument> arguments =
      read_arguments(app, std::vector<std::string>(argv + std::min(argc, 1), argv + argc));
  const auto is_help = [&](const Argument& argument) { return argument.option == app.get_option("--help"); };
  if (std::any_of(arguments.begin(), arguments.end(), is_help)) {  // whatever stands beside it
    options.mode = Mode::kHelp;
    options.help_text = help_text(app);
    return options;
  }
  take(app, arguments);

  options.mode = modes.chosen();
  if (options.chat && options.mode == Mode::kGenerate && !options.prompt && !options.prompt_file) {
    options.mode = Mode::kConversation;
  }
  check_belongs(app, options.mode);
  check_chat(app, options);
  check_stdin(options);
  if (options.mode == Mode::kVersion || options.mode == Mode::kListDevices) return options;
  if (options.model.empty()) throw Error(ExitCode::kUsage, "-m: no model file given");
  if (options.mode == Mode::kBatch) read_batch_format(app, options.batch);
  check_prompt(app, options);
  return options;
}

}  // namespace minfer
