#include "apps/option_values.h"

#include <charconv>
#include <cmath>
#include <functional>
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

// A flag whose every use takes one value, which may look like a flag itself.
CLI::Option* add_repeatable(CLI::App& app, const std::string& flag,
                            std::function<void(const std::string&)> take, const std::string& help) {
  const auto parse = [take = std::move(take)](const CLI::results_t& given) {
    for (const std::string& text : given) take(text);
    return true;
  };
  return app.add_option(flag, parse, help)->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

std::string range(Range<int32_t> allowed) {
  return std::to_string(allowed.lowest) + " to " + std::to_string(allowed.highest);
}

std::string first_name(const std::string& flags) {
  return flags.substr(0, flags.find(','));
}

}  // namespace

CLI::Option* add_integer(CLI::App& app, const std::string& flags, int32_t& target, Range<int32_t> allowed,
                         const std::string& help) {
  const auto parse = [&target, allowed, name = first_name(flags)](const CLI::results_t& given) {
    const auto value = parse_integer(given.front(), allowed);
    if (!value) {
      throw CLI::ValidationError(name,
                                 "'" + given.front() + "' is not a whole number from " + range(allowed));
    }
    target = *value;
    return true;
  };
  return app.add_option(flags, parse, help)->type_name("N");
}

CLI::Option* add_integers(CLI::App& app, const std::string& flags, std::vector<int32_t>& target,
                          int32_t highest, const std::string& help) {
  const auto parse = [&target, highest, name = first_name(flags)](const CLI::results_t& given) {
    target.clear();
    std::string_view rest = given.front();
    if (rest == "0") return true;
    for (bool more = true; more;) {
      const size_t comma = rest.find(',');
      const auto value = parse_integer(rest.substr(0, comma), {1, highest});
      if (!value) {
        throw CLI::ValidationError(name, "'" + given.front() + "' is not a list of whole numbers from " +
                                             range({1, highest}) + " with commas between, nor 0");
      }
      target.push_back(*value);
      more = comma != std::string_view::npos;
      if (more) rest.remove_prefix(comma + 1);
    }
    return true;
  };
  return app.add_option(flags, parse, help)->type_name("N,...");
}

CLI::Option* add_optional_integer(CLI::App& app, const std::string& flags, std::optional<int32_t>& target,
                                  Range<int32_t> allowed, const std::string& help) {
  const auto parse = [&target, allowed, name = first_name(flags)](const CLI::results_t& given) {
    target = parse_integer(given.front(), allowed);
    if (!target) {
      throw CLI::ValidationError(name,
                                 "'" + given.front() + "' is not a whole number from " + range(allowed));
    }
    return true;
  };
  return app.add_option(flags, parse, help)->type_name("N");
}

CLI::Option* add_integer_or_auto(CLI::App& app, const std::string& flags, int32_t& target,
                                 Range<int32_t> allowed, const std::string& help) {
  const auto parse = [&target, allowed, name = first_name(flags)](const CLI::results_t& given) {
    const auto value = given.front() == "auto" ? 0 : parse_integer(given.front(), allowed);
    if (!value) {
      throw CLI::ValidationError(
          name, "'" + given.front() + "' is neither auto nor a whole number from " + range(allowed));
    }
    target = *value;
    return true;
  };
  return app.add_option(flags, parse, help)->type_name("N|auto");
}

CLI::Option* add_number(CLI::App& app, const std::string& flags, double& target, Range<double> allowed,
                        const std::string& help) {
  const auto parse = [&target, allowed, name = first_name(flags)](const CLI::results_t& given) {
    const auto value = parse_number(given.front());
    if (!value || *value < allowed.lowest || *value > allowed.highest) {
      throw CLI::ValidationError(name, "'" + given.front() + "' is not a number from " +
                                           digits(allowed.lowest) + " to " + digits(allowed.highest));
    }
    target = *value;
    return true;
  };
  return app.add_option(flags, parse, help)->type_name("X");
}

CLI::Option* add_seed(CLI::App& app, const std::string& flag, std::optional<uint64_t>& target,
                      const std::string& help) {
  const auto parse = [&target, flag](const CLI::results_t& given) {
    const std::string& text = given.front();
    uint64_t value = 0;
    const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (fault != std::errc() || end != text.data() + text.size()) {
      throw CLI::ValidationError(flag, "'" + text + "' is not a whole number from 0 to 18446744073709551615");
    }
    target = value;
    return true;
  };
  return app.add_option(flag, parse, help)->type_name("N");
}

CLI::Option* add_texts(CLI::App& app, const std::string& flag, std::vector<std::string>& target,
                       const std::string& help) {
  const auto take = [&target, flag](const std::string& text) {
    if (text.empty()) throw CLI::ValidationError(flag, "an empty text");
    target.push_back(text);
  };
  return add_repeatable(app, flag, take, help)->type_name("TEXT");
}

CLI::Option* add_logit_biases(CLI::App& app, const std::string& flag,
                              std::vector<std::pair<int32_t, double>>& target, const std::string& help) {
  const auto take = [&target, flag](const std::string& text) {
    const auto bias = parse_logit_bias(text);
    if (!bias) throw CLI::ValidationError(flag, "'" + text + "' is not ID+BIAS, ID-BIAS or ID-inf");
    target.push_back(*bias);
  };
  return add_repeatable(app, flag, take, help)->type_name("ID+X");
}

}  // namespace minfer
