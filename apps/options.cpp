#include "apps/options.h"

#include <algorithm>
#include <string>
#include <vector>

#include "apps/declare_options.h"
#include "core/error.h"

namespace minfer {
namespace {

constexpr int32_t kDefaultVerified = 32;

constexpr const char* kFooter =
    "Exit codes: 0 done, 1 runtime error, 2 usage, 3 model file, 4 device or memory, 130 Ctrl-C.\n"
    "stdout carries the answer only; the log goes to stderr.";

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
  only({"--logprobs"}, {Mode::kGenerate, Mode::kBatch}, "--batch and a single prompt");
  only({"--json"}, {Mode::kGenerate, Mode::kBench, Mode::kProfile, Mode::kPerplexity, Mode::kListDevices},
       "a single prompt, --bench, --profile, --perplexity and --list-devices");
  only({"-p", "-f", "--trim-newline"}, {Mode::kGenerate, Mode::kTokenize, Mode::kVerify},
       "a single prompt, --tokenize and --verify");
}

void read_batch_format(const CLI::App& app, BatchFlags& batch) {
  const bool by_null = app.count("--batch-null") > 0, by_text = app.count("--batch-delimiter") > 0;
  const bool by_name = app.count("--batch-format") > 0;
  if (by_null + by_text + by_name > 1) {
    throw Error(ExitCode::kUsage, "--batch-format, --batch-delimiter and --batch-null: one at a time");
  }
  if (by_text && batch.delimiter.empty()) throw Error(ExitCode::kUsage, "--batch-delimiter: an empty text");
  if (by_null) batch.delimiter.assign(1, '\0');
  if (by_null || by_text) batch.format = BatchFormat::kDelimited;
  if (!by_null && !by_text && !by_name && batch.input.ends_with(".txt")) batch.format = BatchFormat::kLines;
  if (batch.resume && batch.output == "-") {
    throw Error(ExitCode::kUsage, "--resume: needs --output FILE to resume from");
  }
}

void check_chat(const CLI::App& app, const Options& options) {
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
    throw Error(ExitCode::kUsage, "--escape: belongs to -p TEXT; files and standard input are taken verbatim");
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

// Everything added since the last call stands under `heading` in the help.
void group(CLI::App& app, const std::string& heading) {
  for (CLI::Option* option : app.get_options()) {
    if (option->get_group() == "Options") option->group(heading);
  }
}

}  // namespace

Options parse_options(int argc, char** argv) {
  Options options;
  CLI::App app("minfer-cli: completes a prompt with a GGUF model", "minfer-cli");
  const auto declare = [&](void (*flags)(CLI::App&, Options&), const char* heading) {
    flags(app, options);
    group(app, heading);
  };
  declare(declare_prompt, "Prompt");
  declare(declare_chat, "Chat");
  declare(declare_generation, "Completion");
  declare(declare_sampling, "Sampling");
  declare(declare_batch, "Files of prompts");
  declare(declare_model, "Model and device");
  Modes modes(app);
  modes.add("--tokenize", Mode::kTokenize, "Print the prompt's token ids as a JSON array");
  modes.add("--info", Mode::kInfo, "Print what the model file holds and needs");
  app.add_option("--perplexity", options.perplexity_file, "Perplexity of a text file, in windows of -c tokens")
      ->type_name("FILE");
  modes.note("--perplexity", Mode::kPerplexity);
  modes.note("--batch", Mode::kBatch);
  modes.add("--bench", Mode::kBench, "Time prefill and decode on random token ids");
  modes.add("--profile", Mode::kProfile,
            "cuda: where the time of a prefill and a decode step goes, op by op");
  modes.add("--verify", Mode::kVerify,
            "cuda: the prompt and -n tokens (default 32) on both engines; exit 1 where they differ too much");
  modes.add("--list-devices", Mode::kListDevices, "Print the devices that a model can run on");
  modes.add("--version", Mode::kVersion, "Print the version");
  group(app, "Instead of completing");
  declare(declare_measuring, "Measuring");
  declare(declare_log, "Log");
  app.footer(kFooter);

  try {
    std::vector<std::string> args(argv + std::min(argc, 1), argv + argc);
    // llama.cpp's spelling, which CLI11 would take for -s -y -s.
    for (std::string& arg : args) {
      if (arg == "-sys") arg = "--system-prompt";
    }
    std::reverse(args.begin(), args.end());  // CLI11 takes them from the back
    app.parse(std::move(args));
  } catch (const CLI::CallForHelp&) {
    options.mode = Mode::kHelp;
    options.help_text = app.help();
    return options;
  } catch (const CLI::ParseError& error) {
    throw Error(ExitCode::kUsage, std::string(error.what()) + " (--help lists the flags)");
  }

  options.mode = modes.chosen();
  if (options.chat && options.mode == Mode::kGenerate && !options.prompt && !options.prompt_file) {
    options.mode = Mode::kConversation;
  }
  check_belongs(app, options.mode);
  check_chat(app, options);
  if (options.mode == Mode::kVersion || options.mode == Mode::kListDevices) return options;
  if (options.model.empty()) throw Error(ExitCode::kUsage, "-m: no model file given");
  if (options.mode == Mode::kBatch) read_batch_format(app, options.batch);
  check_prompt(app, options);
  return options;
}

}  // namespace minfer
