// The command line of minfer-cli as a plain struct.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/bench.h"
#include "cuda/engine.h"

namespace minfer {

enum class Mode { kGenerate, kTokenize, kInfo, kBench, kProfile, kVerify, kVersion, kHelp };
enum class DeviceChoice { kAuto, kCpu, kCuda };

struct Options {
  Mode mode = Mode::kGenerate;
  std::string model;                       // -m
  std::optional<std::string> prompt;       // -p; "-" reads standard input
  std::optional<std::string> prompt_file;  // -f
  int32_t n_predict = 512;                 // -n; -1: until the context is full
  int32_t n_ctx = 0;                       // -c; 0: the trained context
  DeviceChoice device = DeviceChoice::kAuto;
  cu::F16Cache f16_cache = cu::F16Cache::kAuto;
  int32_t n_threads = 0;  // -t; 0: one a processor
  bool ignore_eos = false;
  bool parse_special = false;
  std::string pretokenizer;
  BenchOptions bench{.prefill = {2048}, .decode = {128}};
  int32_t n_profile =
      2048;  // tokens of the profiled prefill, and what the profiled decode steps stand behind
  bool json = false;
  bool verify_layers = false;
  bool quiet = false;
  bool verbose = false;
  std::string help_text;  // for Mode::kHelp
};

// Throws Error(kUsage): one line that names the flag, what was given and what is allowed.
Options parse_options(int argc, char** argv);

}  // namespace minfer
