// The log: stderr, one line a message, coloured only on a terminal and without NO_COLOR; a file as well, if
// asked.
#pragma once

#include <string>

namespace minfer {

enum class LogLevel { kQuiet, kNormal, kVerbose };

// `level` is that of stderr. The file, where there is one, is appended to, a time before every line; it gets
// what stderr would get without kQuiet. Throws Error(kUsage) where it cannot be opened.
void set_up_logging(LogLevel level, const std::string& file = "");

}  // namespace minfer
