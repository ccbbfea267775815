#include "cuda/runtime/switches.h"

#include <spdlog/fmt/fmt.h>

#include <charconv>
#include <cstdlib>
#include <string_view>

#include "core/error.h"

namespace minfer::cu {

int switch_number(const char* name, int min, int max, int unset) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return unset;
  const std::string_view text(value);
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < min || number > max) {
    throw Error(ExitCode::kUsage, fmt::format("{}={}: not a number from {} to {}", name, text, min, max));
  }
  return number;
}

bool switch_is_on(const char* name, bool unset) {
  return switch_number(name, 0, 1, unset ? 1 : 0) == 1;
}

}  // namespace minfer::cu
