// The words of a command line, told apart: which are flags, which are values.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

namespace minfer {

// llama.cpp's spelling of --system-prompt, which would otherwise be a row of short flags.
inline constexpr const char* kSystemAlias = "-sys";

struct Argument {
  const CLI::Option* option = nullptr;
  std::string flag;                  // as it was written
  std::optional<std::string> value;  // where the option takes one
};

// --flag value, --flag=value, -f value, -fvalue, and short flags in a row (-qe). What stands where a value is
// due is the value, whatever it looks like. Throws Error(kUsage): a flag that is not there, with the nearest
// one; a value too few or too many; a word that is no flag.
std::vector<Argument> read_arguments(const CLI::App& app, const std::vector<std::string>& words);

}  // namespace minfer
