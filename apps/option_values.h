// Flags that take a value of their own kind and say what they got when it is none.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace minfer {

// A whole number in [lowest, highest].
CLI::Option* add_integer(CLI::App& app, const std::string& flags, int32_t& target, int32_t lowest,
                         int32_t highest, const std::string& help);

// Several in [1, highest], separated by commas; "0" alone is none at all.
CLI::Option* add_integers(CLI::App& app, const std::string& flags, std::vector<int32_t>& target,
                          int32_t highest, const std::string& help);

// One of a few names.
template <typename T>
CLI::Option* add_choice(CLI::App& app, const std::string& flag, T& target,
                        const std::vector<std::pair<std::string, T>>& choices, const std::string& help) {
  const auto parse = [&target, choices, flag](const std::string& given) {
    std::string names;
    for (const auto& [name, value] : choices) {
      if (given == name) {
        target = value;
        return;
      }
      names += (names.empty() ? "" : ", ") + name;
    }
    throw CLI::ValidationError(flag, "'" + given + "' is none of " + names);
  };
  return app.add_option_function<std::string>(flag, parse, help)->type_name("NAME");
}

}  // namespace minfer
