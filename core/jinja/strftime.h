// Private to the interpreter: datetime.strftime as the C locale has it, whatever the process's locale.
#pragma once

#include <ctime>
#include <optional>
#include <string>
#include <string_view>

namespace minfer::jinja {

// Nothing for a conversion that is not known. %Z and %z are empty, as of Python's datetime.now().
std::optional<std::string> format_time(std::string_view format, const std::tm& time);

}  // namespace minfer::jinja
