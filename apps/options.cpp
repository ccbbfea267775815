#include "apps/options.h"

#include <algorithm>
#include <limits>

#include "apps/option_values.h"
#include "core/error.h"

namespace minfer {
namespace {

constexpr int32_t kMax = std::numeric_limits<int32_t>::max();
constexpr int32_t kDefaultVerified = 32;

constexpr const char* kFooter =
    "Exit codes: 0 done, 1 runtime error, 2 usage, 3 model file, 4 device or memory, 130 Ctrl-C.\n"
    "stdout carries the answer only; the log goes to stderr.";

void declare_generation(CLI::App& app, Options& options) {
  CLI::Option* prompt =
      app.add_option("-p,--prompt", options.prompt, "Prompt, completed as raw text; '-' reads standard input")
          ->type_name("TEXT");
  app.add_option("-f,--file", options.prompt_file, "Read the prompt from a file, verbatim")
      ->type_name("FILE")
      ->excludes(prompt);
  add_integer(app, "-n,--n-predict", options.n_predict, -1, kMax,
              "Tokens to generate at most; -1: until the context is full (default 512)");
  add_integer(app, "-c,--ctx-size", options.n_ctx, 0, kMax,
              "Context: tokens of prompt and completion together; 0: as trained (default 0)");
  app.add_flag("--ignore-eos", options.ignore_eos, "Go on past end-of-generation tokens");
  app.add_flag("--parse-special", options.parse_special,
               "Read '<|im_end|>' and the like in the prompt as control tokens");
}

void declare_model(CLI::App& app, Options& options) {
  app.add_option("-m,--model", options.model, "Model file (GGUF; the first one of a split model)")
      ->type_name("FILE");
  add_choice<DeviceChoice>(
      app, "--device", options.device,
      {{"auto", DeviceChoice::kAuto}, {"cpu", DeviceChoice::kCpu}, {"cuda", DeviceChoice::kCuda}},
      "auto, cpu or cuda (default auto)");
  add_choice<cu::F16Cache>(
      app, "--f16-cache", options.f16_cache,
      {{"auto", cu::F16Cache::kAuto}, {"on", cu::F16Cache::kOn}, {"off", cu::F16Cache::kOff}},
      "cuda: weights in f16 too, for prefill: auto (where it fits), on, off");
  add_integer(app, "-t,--threads", options.n_threads, 0, 1024, "CPU threads; 0: one a processor (default 0)");
  app.add_option("--pretokenizer", options.pretokenizer, "Use this pre-tokenizer instead of the file's")
      ->type_name("NAME");
}

void declare_log(CLI::App& app, Options& options) {
  app.add_flag("-q,--quiet", options.quiet, "Only errors on stderr");
  app.add_flag("-v,--verbose", options.verbose, "More on stderr");
}

// The flags that choose a mode, one at a time.
class Modes {
 public:
  explicit Modes(CLI::App& app) : app_(app) {}
  void add(const std::string& flag, Mode mode, const std::string& help) {
    app_.add_flag(flag, help);
    flags_.emplace_back(flag, mode);
  }
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

void declare_measuring(CLI::App& app, Options& options) {
  BenchOptions& bench = options.bench;
  add_integers(app, "--bench-prefill", bench.prefill, kMax, "Prompt lengths to time; 0: none (default 2048)");
  add_integers(app, "--bench-decode", bench.decode, kMax,
               "Numbers of tokens to decode; 0: none (default 128)");
  add_integer(app, "--bench-depth", bench.depth, 0, kMax, "Tokens in the KV cache before the clock starts");
  add_integer(app, "--bench-repetitions", bench.n_repetitions, 1, 100000,
              "Runs of each, after a warm-up (default 5)");
  add_integer(app, "--profile-prefill", options.n_profile, 1, kMax,
              "Tokens of the profiled prompt (default 2048)");
  app.add_flag("--verify-layers", options.verify_layers, "Errors of the residual stream by layer too");
  app.add_flag("--json", options.json, "--bench, --profile: one JSON object a line instead of a table");
}

// What belongs to one mode says so in any other.
void check_belongs(const CLI::App& app, Mode mode) {
  const auto only = [&](const char* flag, std::initializer_list<Mode> modes, const char* names) {
    if (app.count(flag) > 0 && std::find(modes.begin(), modes.end(), mode) == modes.end()) {
      throw Error(ExitCode::kUsage, std::string(flag) + ": belongs to " + names);
    }
  };
  for (const char* flag : {"--bench-prefill", "--bench-decode", "--bench-depth", "--bench-repetitions"}) {
    only(flag, {Mode::kBench}, "--bench");
  }
  only("--profile-prefill", {Mode::kProfile}, "--profile");
  only("--verify-layers", {Mode::kVerify}, "--verify");
  only("--json", {Mode::kBench, Mode::kProfile}, "--bench and --profile");
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
  declare_generation(app, options);
  group(app, "Completion");
  declare_model(app, options);
  group(app, "Model and device");
  Modes modes(app);
  modes.add("--tokenize", Mode::kTokenize, "Print the prompt's token ids as a JSON array");
  modes.add("--info", Mode::kInfo, "Print what the model file holds and needs");
  modes.add("--bench", Mode::kBench, "Time prefill and decode on random token ids");
  modes.add("--profile", Mode::kProfile,
            "cuda: where the time of a prefill and a decode step goes, op by op");
  modes.add("--verify", Mode::kVerify,
            "cuda: the prompt and -n tokens (default 32) on both engines; exit 1 where they differ too much");
  modes.add("--version", Mode::kVersion, "Print the version");
  group(app, "Instead of completing");
  declare_measuring(app, options);
  group(app, "Measuring");
  declare_log(app, options);
  group(app, "Log");
  app.footer(kFooter);

  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    options.mode = Mode::kHelp;
    options.help_text = app.help();
    return options;
  } catch (const CLI::ParseError& error) {
    throw Error(ExitCode::kUsage, std::string(error.what()) + " (--help lists the flags)");
  }

  options.mode = modes.chosen();
  check_belongs(app, options.mode);
  if (options.mode == Mode::kVersion) return options;
  if (options.model.empty()) throw Error(ExitCode::kUsage, "-m: no model file given");
  if (options.mode == Mode::kInfo || options.mode == Mode::kBench || options.mode == Mode::kProfile)
    return options;
  if (!options.prompt && !options.prompt_file) {
    throw Error(ExitCode::kUsage, "no prompt given: -p TEXT, -p - (standard input) or -f FILE");
  }
  if (options.mode == Mode::kVerify) {
    if (app.count("-n") == 0) options.n_predict = kDefaultVerified;
    if (options.n_predict < 0) throw Error(ExitCode::kUsage, "-n -1: --verify needs a number of tokens");
  }
  return options;
}

}  // namespace minfer
