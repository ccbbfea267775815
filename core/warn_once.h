// Warnings about a model that several readers of it would repeat.
#pragma once

#include <string>

namespace minfer {

// Logs a warning, unless this process has logged the same one before.
void warn_once(const std::string& message);

}  // namespace minfer
