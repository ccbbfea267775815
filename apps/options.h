// The command line of minfer-cli as a plain struct.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/batch_file/split.h"
#include "core/bench.h"
#include "core/completion.h"
#include "cuda/engine.h"

namespace minfer {

enum class Mode {
  kGenerate,  // one prompt, one answer; raw text, or a chat of one turn with `chat`
  kConversation,
  kBatch,
  kPerplexity,
  kTokenize,
  kInfo,
  kBench,
  kProfile,
  kVerify,
  kListDevices,
  kVersion,
  kHelp,
};
enum class DeviceChoice { kAuto, kCpu, kCuda };

struct BatchFlags {
  std::string input;         // --batch; "-" reads standard input
  std::string output = "-";  // --output; "-": standard output
  BatchFormat format = BatchFormat::kJsonLines;
  std::string delimiter;  // not empty for kDelimited; NUL with --batch-null
  bool resume = false;
  int32_t n_parallel = 0;  // 0: as many as fit
};

struct Options {
  Mode mode = Mode::kGenerate;
  std::string model;  // -m

  std::optional<std::string> prompt;       // -p; "-" reads standard input
  std::optional<std::string> prompt_file;  // -f
  bool trim_newline = false;               // one newline at the end of -f and -p - is dropped
  bool escape = false;                     // -p: \n, \t, ... are read
  bool display_prompt = false;
  bool parse_special = false;

  bool chat = false;                            // through the chat template
  std::optional<std::string> system_prompt;     // -sys
  std::optional<std::string> system_file;       // --system-file
  std::optional<std::string> prefill_response;  // what the answer begins with
  std::optional<std::string> chat_template;     // a file, instead of the model's template

  GenerateOptions generation;    // sampling.seed is `seed` or drawn
  std::optional<uint64_t> seed;  // --seed

  BatchFlags batch;
  std::string perplexity_file;  // --perplexity

  DeviceChoice device = DeviceChoice::kAuto;
  cu::F16Cache f16_cache = cu::F16Cache::kAuto;
  int32_t n_threads = 0;  // -t; 0: one a processor
  std::string pretokenizer;

  BenchOptions bench{.prefill = {2048}, .decode = {128}};
  int32_t n_profile =
      2048;  // tokens of the profiled prefill, and what the profiled decode steps stand behind
  bool verify_layers = false;
  bool json = false;

  bool quiet = false;
  bool verbose = false;
  std::string log_file;   // --log-file; empty: none
  std::string help_text;  // for Mode::kHelp
};

// Throws Error(kUsage): one line that names the flag, what was given and what is allowed.
Options parse_options(int argc, char** argv);

}  // namespace minfer
