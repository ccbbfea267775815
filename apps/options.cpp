#include "apps/options.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <limits>

#include "core/error.h"

namespace minfer {
namespace {

constexpr const char* kFooter =
    "Exit codes: 0 done, 1 runtime error, 2 usage, 3 model file, 4 device or memory, 130 Ctrl-C.\n"
    "stdout carries the answer only; the log goes to stderr.";

// An option that takes a whole number in [lowest, highest] and says so when it gets anything else.
CLI::Option* add_integer(CLI::App& app, const std::string& flags, int32_t& target, int32_t lowest,
                         int32_t highest, const std::string& help) {
  const std::string name = flags.substr(0, flags.find(','));
  const auto parse = [&target, lowest, highest, name](const CLI::results_t& given) {
    const std::string& text = given.front();
    int32_t value = 0;
    const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (fault != std::errc() || end != text.data() + text.size() || value < lowest || value > highest) {
      throw CLI::ValidationError(name, "'" + text + "' is not a whole number from " + std::to_string(lowest) +
                                           " to " + std::to_string(highest));
    }
    target = value;
    return true;
  };
  return app.add_option(flags, parse, help)->type_name("N");
}

DeviceChoice parse_device(const std::string& name) {
  if (name == "auto") return DeviceChoice::kAuto;
  if (name == "cpu") return DeviceChoice::kCpu;
  if (name == "cuda") return DeviceChoice::kCuda;
  throw CLI::ValidationError("--device", "'" + name + "' is none of auto, cpu, cuda");
}

void declare(CLI::App& app, Options& options) {
  constexpr int32_t kMax = std::numeric_limits<int32_t>::max();
  app.add_option("-m,--model", options.model, "Model file (GGUF; the first one of a split model)")
      ->type_name("FILE");
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
  app.add_option_function<std::string>(
         "--device", [&options](const std::string& name) { options.device = parse_device(name); },
         "auto, cpu or cuda (default auto)")
      ->type_name("NAME");
  add_integer(app, "-t,--threads", options.n_threads, 0, 1024, "CPU threads; 0: one a processor (default 0)");
  app.add_flag("--ignore-eos", options.ignore_eos, "Go on past end-of-generation tokens");
  app.add_flag("--parse-special", options.parse_special,
               "Read '<|im_end|>' and the like in the prompt as control tokens");
  app.add_option("--pretokenizer", options.pretokenizer, "Use this pre-tokenizer instead of the file's")
      ->type_name("NAME");
  app.add_flag("-q,--quiet", options.quiet, "Only errors on stderr");
  app.add_flag("-v,--verbose", options.verbose, "More on stderr");
}

}  // namespace

Options parse_options(int argc, char** argv) {
  Options options;
  CLI::App app("minfer-cli: completes a prompt with a GGUF model", "minfer-cli");
  bool tokenize = false, info = false, version = false;
  declare(app, options);
  CLI::Option* tokenize_flag =
      app.add_flag("--tokenize", tokenize, "Print the prompt's token ids as a JSON array and exit");
  app.add_flag("--info", info, "Print what the model file holds and needs, and exit")
      ->excludes(tokenize_flag);
  app.add_flag("--version", version, "Print the version and exit");
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

  options.mode = version ? Mode::kVersion : info ? Mode::kInfo : tokenize ? Mode::kTokenize : Mode::kGenerate;
  if (options.mode == Mode::kVersion) return options;
  if (options.model.empty()) throw Error(ExitCode::kUsage, "-m: no model file given");
  const bool needs_prompt = options.mode != Mode::kInfo;
  if (needs_prompt && !options.prompt && !options.prompt_file) {
    throw Error(ExitCode::kUsage, "no prompt given: -p TEXT, -p - (standard input) or -f FILE");
  }
  return options;
}

}  // namespace minfer
