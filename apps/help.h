// --help: the flags in their groups, each group no longer than a screen of 24 lines, no line over 80 columns.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace minfer {

std::string help_text(const CLI::App& app);

}  // namespace minfer
