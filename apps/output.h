// Output without buffers: what was written is there whatever ends the process.
#pragma once

#include <string>
#include <string_view>

namespace minfer {

// Writes every byte, in one go where the system takes them. `name` stands in errors. Throws Error(kRuntime)
// with the system's reason (closed pipe, full disk).
void write_all(int fd, std::string_view bytes, const std::string& name);
void write_stdout(std::string_view bytes);

}  // namespace minfer
