// Where a prompt comes from.
#pragma once

#include <string>

#include "apps/options.h"

namespace minfer {

// -p TEXT, -p - (standard input to its end) or -f FILE; bytes as they are, a trailing newline included.
// Throws Error(kUsage) for a file that cannot be read or an empty prompt, Error(kInterrupted) on Ctrl-C.
std::string read_prompt(const Options& options);

}  // namespace minfer
