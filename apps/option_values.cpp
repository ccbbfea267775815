#include "apps/option_values.h"

#include <charconv>
#include <optional>
#include <string_view>

namespace minfer {
namespace {

std::optional<int32_t> parse_integer(std::string_view text, int32_t lowest, int32_t highest) {
  int32_t value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (fault != std::errc() || end != text.data() + text.size() || value < lowest || value > highest)
    return {};
  return value;
}

std::string range(int32_t lowest, int32_t highest) {
  return std::to_string(lowest) + " to " + std::to_string(highest);
}

std::string first_name(const std::string& flags) {
  return flags.substr(0, flags.find(','));
}

}  // namespace

CLI::Option* add_integer(CLI::App& app, const std::string& flags, int32_t& target, int32_t lowest,
                         int32_t highest, const std::string& help) {
  const auto parse = [&target, lowest, highest, name = first_name(flags)](const CLI::results_t& given) {
    const auto value = parse_integer(given.front(), lowest, highest);
    if (!value) {
      throw CLI::ValidationError(
          name, "'" + given.front() + "' is not a whole number from " + range(lowest, highest));
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
      const auto value = parse_integer(rest.substr(0, comma), 1, highest);
      if (!value) {
        throw CLI::ValidationError(name, "'" + given.front() + "' is not a list of whole numbers from " +
                                             range(1, highest) + " with commas between, nor 0");
      }
      target.push_back(*value);
      more = comma != std::string_view::npos;
      if (more) rest.remove_prefix(comma + 1);
    }
    return true;
  };
  return app.add_option(flags, parse, help)->type_name("N,...");
}

}  // namespace minfer
