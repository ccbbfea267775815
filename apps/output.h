// Standard output, unbuffered: what was written is there whatever ends the process.
#pragma once

#include <string_view>

namespace minfer {

// Writes every byte. Throws Error(kRuntime) with the system's reason (closed pipe, full disk).
void write_stdout(std::string_view bytes);

}  // namespace minfer
