#include "core/jinja/strftime.h"

#include <fmt/format.h>

#include <array>

namespace minfer::jinja {
namespace {

constexpr std::array<std::string_view, 7> kDays = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                                   "Thursday", "Friday", "Saturday"};
constexpr std::array<std::string_view, 12> kMonths = {"January",   "February", "March",    "April",
                                                      "May",       "June",     "July",     "August",
                                                      "September", "October",  "November", "December"};

template <size_t n>
std::string_view name_of(const std::array<std::string_view, n>& names, int i) {
  return i >= 0 && i < static_cast<int>(n) ? names[static_cast<size_t>(i)] : "?";
}

// Weeks of the year that began on `first_day` (0: Sunday).
int week_of_year(const std::tm& time, int first_day) {
  const int since_first_day = (time.tm_wday - first_day + 7) % 7;
  return (time.tm_yday + 7 - since_first_day) / 7;
}

std::optional<std::string> convert(char conversion, const std::tm& time) {
  const int year = time.tm_year + 1900;
  const int hour12 = time.tm_hour % 12 == 0 ? 12 : time.tm_hour % 12;
  const auto nested = [&](std::string_view format) { return format_time(format, time); };
  switch (conversion) {
    case 'a':
      return std::string(name_of(kDays, time.tm_wday).substr(0, 3));
    case 'A':
      return std::string(name_of(kDays, time.tm_wday));
    case 'b':
    case 'h':
      return std::string(name_of(kMonths, time.tm_mon).substr(0, 3));
    case 'B':
      return std::string(name_of(kMonths, time.tm_mon));
    case 'c':
      return nested("%a %b %e %H:%M:%S %Y");
    case 'C':
      return fmt::format("{:02}", year / 100);
    case 'd':
      return fmt::format("{:02}", time.tm_mday);
    case 'D':
    case 'x':
      return nested("%m/%d/%y");
    case 'e':
      return fmt::format("{:2}", time.tm_mday);
    case 'f':
      return "000000";
    case 'F':
      return nested("%Y-%m-%d");
    case 'H':
      return fmt::format("{:02}", time.tm_hour);
    case 'I':
      return fmt::format("{:02}", hour12);
    case 'j':
      return fmt::format("{:03}", time.tm_yday + 1);
    case 'm':
      return fmt::format("{:02}", time.tm_mon + 1);
    case 'M':
      return fmt::format("{:02}", time.tm_min);
    case 'n':
      return "\n";
    case 'p':
      return time.tm_hour < 12 ? "AM" : "PM";
    case 'r':
      return nested("%I:%M:%S %p");
    case 'R':
      return nested("%H:%M");
    case 'S':
      return fmt::format("{:02}", time.tm_sec);
    case 't':
      return "\t";
    case 'T':
    case 'X':
      return nested("%H:%M:%S");
    case 'u':
      return std::to_string(time.tm_wday == 0 ? 7 : time.tm_wday);
    case 'U':
      return fmt::format("{:02}", week_of_year(time, 0));
    case 'w':
      return std::to_string(time.tm_wday);
    case 'W':
      return fmt::format("{:02}", week_of_year(time, 1));
    case 'y':
      return fmt::format("{:02}", year % 100);
    case 'Y':
      return std::to_string(year);
    case 'z':
    case 'Z':
      return "";
    case '%':
      return "%";
    default:
      return std::nullopt;
  }
}

// "%-d": without the zeros or blanks before it.
std::string unpadded(const std::string& text) {
  const size_t first = text.find_first_not_of("0 ");
  return first == std::string::npos ? text.substr(text.size() - 1) : text.substr(first);
}

}  // namespace

std::optional<std::string> format_time(std::string_view format, const std::tm& time) {
  std::string out;
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%' || i + 1 == format.size()) {
      out += format[i];
      continue;
    }
    const bool is_unpadded = format[i + 1] == '-' && i + 2 < format.size();
    i += is_unpadded ? 2 : 1;
    const auto converted = convert(format[i], time);
    if (!converted) return std::nullopt;
    out += is_unpadded && !converted->empty() ? unpadded(*converted) : *converted;
  }
  return out;
}

}  // namespace minfer::jinja
