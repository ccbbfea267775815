// What the tests of minfer-cli share.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/subprocess.h"

namespace minfer::test {

// A small model with random weights and a real vocabulary's beginning, which every clone has.
inline const std::string kSmallModel = MINFER_SOURCE_DIR "/tests/data/parity/qwen2-hd128-gqa2.q4_k_m.gguf";

// A run of minfer-cli with these arguments, ready to be refined.
inline Run cli(std::vector<std::string> args) {
  args.insert(args.begin(), MINFER_CLI);
  Run run;
  run.args = std::move(args);
  return run;
}

inline Outcome run_cli(std::vector<std::string> args) {
  return run_process(cli(std::move(args)));
}

// How an error has to look: nothing on stdout, and one line on stderr that begins with "error: ".
inline bool is_one_error_line(const Outcome& outcome) {
  return outcome.out.empty() && outcome.err.starts_with("error: ") && outcome.err.ends_with('\n') &&
         std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1;
}

}  // namespace minfer::test
