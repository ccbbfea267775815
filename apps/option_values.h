// Flags that take a value of their own kind and say what they got when it is none.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/option_ranges.h"

namespace minfer {

// Calls take(value) with the flag's value: the last one where it was given several times.
CLI::Option* add_value(CLI::App& app, const std::string& flags, const std::string& type,
                       std::function<void(const std::string&)> take, const std::string& help);

// A whole number in its range.
CLI::Option* add_integer(CLI::App& app, const std::string& flags, int32_t& target, Range<int32_t> allowed,
                         const std::string& help);

// Several in [1, highest], separated by commas; "0" alone is none at all.
CLI::Option* add_integers(CLI::App& app, const std::string& flags, std::vector<int32_t>& target,
                          int32_t highest, const std::string& help);

// The same, and nothing where the flag is absent.
CLI::Option* add_optional_integer(CLI::App& app, const std::string& flags, std::optional<int32_t>& target,
                                  Range<int32_t> allowed, const std::string& help);

// A whole number, or "auto", which is 0.
CLI::Option* add_integer_or_auto(CLI::App& app, const std::string& flags, int32_t& target,
                                 Range<int32_t> allowed, const std::string& help);

// A decimal number in its range, with a point in every locale.
CLI::Option* add_number(CLI::App& app, const std::string& flags, double& target, Range<double> allowed,
                        const std::string& help);

// 0 to 2^64 - 1.
CLI::Option* add_seed(CLI::App& app, const std::string& flag, std::optional<uint64_t>& target,
                      const std::string& help);

// Bytes as they are; given "", a text and not nothing.
CLI::Option* add_text(CLI::App& app, const std::string& flags, std::optional<std::string>& target,
                      const std::string& help);

// The same, not empty: a path, a name.
CLI::Option* add_name(CLI::App& app, const std::string& flags, const std::string& type, std::string& target,
                      const std::string& help);
CLI::Option* add_name(CLI::App& app, const std::string& flags, const std::string& type,
                      std::optional<std::string>& target, const std::string& help);

// Texts, one each time that the flag is given; not empty.
CLI::Option* add_texts(CLI::App& app, const std::string& flag, std::vector<std::string>& target,
                       const std::string& help);

// ID+BIAS, ID-BIAS or ID-inf, one each time that the flag is given.
CLI::Option* add_logit_biases(CLI::App& app, const std::string& flag,
                              std::vector<std::pair<int32_t, double>>& target, const std::string& help);

// One of a few names.
template <typename T>
CLI::Option* add_choice(CLI::App& app, const std::string& flag, T& target,
                        const std::vector<std::pair<std::string, T>>& choices, const std::string& help) {
  const auto take = [&target, choices, flag](const std::string& given) {
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
  return add_value(app, flag, "NAME", take, help);
}

}  // namespace minfer
