// The log: stderr, one line a message, coloured only on a terminal and without NO_COLOR.
#pragma once

namespace minfer {

enum class LogLevel { kQuiet, kNormal, kVerbose };

void set_up_logging(LogLevel level);

}  // namespace minfer
