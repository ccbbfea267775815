// JSON as it is printed, one object a line.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace minfer {

// One line with its newline. Bytes that are no UTF-8 (a path, half a character) become U+FFFD: the line is
// valid JSON whatever they are.
inline std::string json_line(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace minfer
