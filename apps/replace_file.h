// Writes a file as a whole or not at all.
#pragma once

#include <string>
#include <string_view>

namespace minfer {

// Through a temporary file beside it, which takes its place. Returns whether there was one. Throws
// Error(kRuntime) naming the file.
bool replace_file(const std::string& path, std::string_view bytes);

}  // namespace minfer
