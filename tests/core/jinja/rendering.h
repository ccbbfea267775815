// One-line renderings for the tests of the template interpreter.
#pragma once

#include <ctime>
#include <nlohmann/json.hpp>
#include <string>

#include "core/jinja/template.h"
#include "tests/support/catch.h"

namespace minfer::test {

using Json = nlohmann::ordered_json;

// "2024-07-26T12:00:00", with its day of the week and of the year.
inline std::tm parse_time(const std::string& text) {
  std::tm time{};
  std::sscanf(text.c_str(), "%d-%d-%dT%d:%d:%d", &time.tm_year, &time.tm_mon, &time.tm_mday, &time.tm_hour,
              &time.tm_min, &time.tm_sec);
  time.tm_year -= 1900;
  time.tm_mon -= 1;
  time.tm_isdst = -1;
  std::mktime(&time);
  return time;
}

inline jinja::Rendered render(const std::string& source, const Json& input = Json::object(),
                              const Json& variables = Json::object(), const jinja::Limits& limits = {}) {
  return jinja::Template(source).render(input, variables, parse_time("2024-07-26T12:00:00"), limits);
}

// The text with each range of the users' bytes between ‹ and ›.
inline std::string marked(const jinja::Rendered& rendered) {
  std::string out;
  size_t at = 0;
  for (const ByteRange& range : rendered.input) {
    REQUIRE(range.begin >= at);
    REQUIRE(range.begin < range.end);
    REQUIRE(range.end <= rendered.text.size());
    out += rendered.text.substr(at, range.begin - at) + "\u2039";
    out += rendered.text.substr(range.begin, range.end - range.begin) + "\u203a";
    at = range.end;
  }
  return out + rendered.text.substr(at);
}

// What the template fails with, as "line:column: message"; "" where it does not.
inline std::string failure(const std::string& source, const jinja::Limits& limits = {},
                           const Json& variables = Json::object()) {
  try {
    render(source, Json::object(), variables, limits);
  } catch (const jinja::Error& error) {
    return std::to_string(error.line()) + ":" + std::to_string(error.column()) + ": " + error.message();
  }
  return "";
}

}  // namespace minfer::test
