#include <spdlog/spdlog.h>

#include <new>

#include "apps/logging.h"
#include "apps/modes.h"
#include "apps/output.h"
#include "core/cancel.h"
#include "gguf/error.h"

namespace {

minfer::ExitCode run(int argc, char** argv) {
  using namespace minfer;
  const Options options = parse_options(argc, argv);
  set_up_logging(options.quiet     ? LogLevel::kQuiet
                 : options.verbose ? LogLevel::kVerbose
                                   : LogLevel::kNormal,
                 options.log_file);
  switch (options.mode) {
    case Mode::kGenerate:
      return run_generate(options);
    case Mode::kConversation:
      return run_conversation(options);
    case Mode::kBatch:
      return run_batch(options);
    case Mode::kPerplexity:
      return run_perplexity(options);
    case Mode::kTokenize:
      return run_tokenize(options);
    case Mode::kInfo:
      return run_info(options);
    case Mode::kBench:
      return run_bench(options);
    case Mode::kProfile:
      return run_profile(options);
    case Mode::kVerify:
      return run_verify(options);
    case Mode::kListDevices:
      return run_list_devices(options);
    case Mode::kVersion:
      return run_version();
    case Mode::kHelp:
      write_stdout(options.help_text);
  }
  return ExitCode::kOk;
}

minfer::ExitCode fail(minfer::ExitCode code, const char* what) {
  spdlog::error("{}", minfer::gguf::printable(what));  // what a user or a file wrote stays on one line
  return code;
}

minfer::ExitCode run_and_report(int argc, char** argv) {
  using minfer::ExitCode;
  try {
    minfer::install_signal_handlers();
    return run(argc, argv);
  } catch (const minfer::Error& error) {
    return fail(error.code(), error.what());
  } catch (const minfer::gguf::Error& error) {
    return fail(ExitCode::kModelFile, error.what());
  } catch (const std::bad_alloc&) {
    return fail(ExitCode::kDevice, "out of memory");
  } catch (const std::exception& error) {
    return fail(ExitCode::kRuntime, error.what());
  }
}

}  // namespace

int main(int argc, char** argv) {
  using minfer::ExitCode;
  minfer::set_up_logging(minfer::LogLevel::kNormal);
  const ExitCode code = run_and_report(argc, argv);
  // A signal that nobody looked for, since the work was as good as done, shows all the same.
  return static_cast<int>(minfer::interrupted() ? ExitCode::kInterrupted : code);
}
