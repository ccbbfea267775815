#include "apps/option_values.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>

namespace minfer {
namespace {

std::optional<int32_t> parse_integer(std::string_view text, Range<int32_t> allowed) {
  int32_t value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (fault != std::errc() || end != text.data() + text.size() || value < allowed.lowest ||
      value > allowed.highest)
    return {};
  return value;
}

std::optional<double> parse_number(std::string_view text) {
  double value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (fault != std::errc() || end != text.data() + text.size() || std::isnan(value)) return {};
  return value;
}

// "0.5", "1000": the shortest digits that give the number back.
std::string digits(double value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  return {text, end};
}

std::optional<std::pair<int32_t, double>> parse_logit_bias(std::string_view text) {
  const size_t sign = text.find_first_of("+-");
  if (sign == std::string_view::npos) return {};
  const auto id = parse_integer(text.substr(0, sign), {0, kMaxCount});
  const auto bias = parse_number(text.substr(text[sign] == '+' ? sign + 1 : sign));
  if (!id || !bias || *bias == std::numeric_limits<double>::infinity()) return {};
  return std::pair(*id, *bias);
}

std::string range(Range<int32_t> allowed) {
  return std::to_string(allowed.lowest) + " to " + std::to_string(allowed.highest);
}

std::string first_name(const std::string& flags) {
  return flags.substr(0, flags.find(','));
}

int32_t integer_in(Range<int32_t> allowed, const std::string& given, const std::string& flag,
                   const std::string& or_else = "not") {
  const auto value = parse_integer(given, allowed);
  if (value) return *value;
  throw CLI::ValidationError(flag,
                             "'" + given + "' is " + or_else + " a whole number from " + range(allowed));
}

std::string not_empty(const std::string& given, const std::string& flag) {
  if (given.empty()) throw CLI::ValidationError(flag, "an empty text");
  return given;
}

auto take_name(auto& target, const std::string& flags) {
  return [&target, flag = first_name(flags)](const std::string& given) { target = not_empty(given, flag); };
}

// Every use of the flag counts.
CLI::Option* add_repeatable(CLI::App& app, const std::string& flag, const std::string& type,
                            std::function<void(const std::string&)> take, const std::string& help) {
  const auto parse = [take = std::move(take)](const CLI::results_t& given) {
    for (const std::string& text : given) take(text);
    return true;
  };
  return app.add_option(flag, parse, help)
      ->type_name(type)
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

}  // namespace

CLI::Option* add_value(CLI::App& app, const std::string& flags, const std::string& type,
                       std::function<void(const std::string&)> take, const std::string& help) {
  const auto parse = [take = std::move(take)](const CLI::results_t& given) {
    take(given.back());
    return true;
  };
  return app.add_option(flags, parse, help)->type_name(type)->take_last();
}

CLI::Option* add_integer(CLI::App& app, const std::string& flags, int32_t& target, Range<int32_t> allowed,
                         const std::string& help) {
  const auto take = [&target, allowed, flag = first_name(flags)](const std::string& given) {
    target = integer_in(allowed, given, flag);
  };
  return add_value(app, flags, "N", take, help);
}

CLI::Option* add_integers(CLI::App& app, const std::string& flags, std::vector<int32_t>& target,
                          int32_t highest, const std::string& help) {
  const auto take = [&target, highest, flag = first_name(flags)](const std::string& given) {
    target.clear();
    std::string_view rest = given;
    if (rest == "0") return;
    for (bool more = true; more;) {
      const size_t comma = rest.find(',');
      const auto value = parse_integer(rest.substr(0, comma), {1, highest});
      if (!value) {
        throw CLI::ValidationError(flag, "'" + given + "' is not a list of whole numbers from " +
                                             range({1, highest}) + " with commas between, nor 0");
      }
      target.push_back(*value);
      more = comma != std::string_view::npos;
      if (more) rest.remove_prefix(comma + 1);
    }
  };
  return add_value(app, flags, "N,...", take, help);
}

CLI::Option* add_optional_integer(CLI::App& app, const std::string& flags, std::optional<int32_t>& target,
                                  Range<int32_t> allowed, const std::string& help) {
  const auto take = [&target, allowed, flag = first_name(flags)](const std::string& given) {
    target = integer_in(allowed, given, flag);
  };
  return add_value(app, flags, "N", take, help);
}

CLI::Option* add_integer_or_auto(CLI::App& app, const std::string& flags, int32_t& target,
                                 Range<int32_t> allowed, const std::string& help) {
  const auto take = [&target, allowed, flag = first_name(flags)](const std::string& given) {
    target = given == "auto" ? 0 : integer_in(allowed, given, flag, "neither auto nor");
  };
  return add_value(app, flags, "N|auto", take, help);
}

CLI::Option* add_number(CLI::App& app, const std::string& flags, double& target, Range<double> allowed,
                        const std::string& help) {
  const auto take = [&target, allowed, flag = first_name(flags)](const std::string& given) {
    const auto value = parse_number(given);
    if (!value || *value < allowed.lowest || *value > allowed.highest) {
      throw CLI::ValidationError(flag, "'" + given + "' is not a number from " + digits(allowed.lowest) +
                                           " to " + digits(allowed.highest));
    }
    target = *value;
  };
  return add_value(app, flags, "X", take, help);
}

CLI::Option* add_seed(CLI::App& app, const std::string& flag, std::optional<uint64_t>& target,
                      const std::string& help) {
  const auto take = [&target, flag](const std::string& given) {
    uint64_t value = 0;
    const auto [end, fault] = std::from_chars(given.data(), given.data() + given.size(), value);
    if (fault != std::errc() || end != given.data() + given.size()) {
      throw CLI::ValidationError(flag,
                                 "'" + given + "' is not a whole number from 0 to 18446744073709551615");
    }
    target = value;
  };
  return add_value(app, flag, "N", take, help);
}

CLI::Option* add_text(CLI::App& app, const std::string& flags, std::optional<std::string>& target,
                      const std::string& help) {
  return add_value(
      app, flags, "TEXT", [&target](const std::string& given) { target = given; }, help);
}

CLI::Option* add_name(CLI::App& app, const std::string& flags, const std::string& type, std::string& target,
                      const std::string& help) {
  return add_value(app, flags, type, take_name(target, flags), help);
}

CLI::Option* add_name(CLI::App& app, const std::string& flags, const std::string& type,
                      std::optional<std::string>& target, const std::string& help) {
  return add_value(app, flags, type, take_name(target, flags), help);
}

CLI::Option* add_texts(CLI::App& app, const std::string& flag, std::vector<std::string>& target,
                       const std::string& help) {
  const auto take = [&target, flag](const std::string& given) { target.push_back(not_empty(given, flag)); };
  return add_repeatable(app, flag, "TEXT", take, help);
}

CLI::Option* add_logit_biases(CLI::App& app, const std::string& flag,
                              std::vector<std::pair<int32_t, double>>& target, const std::string& help) {
  const auto take = [&target, flag](const std::string& given) {
    const auto bias = parse_logit_bias(given);
    if (!bias) throw CLI::ValidationError(flag, "'" + given + "' is not ID+BIAS, ID-BIAS or ID-inf");
    target.push_back(*bias);
  };
  return add_repeatable(app, flag, "ID+X", take, help);
}

}  // namespace minfer
