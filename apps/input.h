// Where a prompt comes from.
#pragma once

#include <string>

#include "apps/options.h"

namespace minfer {

// A whole file; `path` "-" reads standard input to its end. `flag` names it in an error. Throws Error(kUsage)
// where it cannot be read, Error(kInterrupted) on Ctrl-C.
std::string read_input(const std::string& flag, const std::string& path);

// -p TEXT (with --escape read), -p - (standard input to its end) or -f FILE; bytes as they are, a trailing
// newline included but for --trim-newline. Throws Error(kUsage) for a file that cannot be read, a bad escape
// or an empty prompt, Error(kInterrupted) on Ctrl-C.
std::string read_prompt(const Options& options);

}  // namespace minfer
