// Private to the interpreter: Python's two ways to format.
#pragma once

#include <optional>
#include <string_view>

#include "core/jinja/operations.h"

namespace minfer::jinja {

// [[fill]align][sign][#][0][width][,][.precision][type]
struct FormatSpec {
  std::string_view fill = " ";
  char align = '\0';        // < > ^ =; none given: texts to the left, numbers to the right
  char sign = '\0';         // + or a blank
  bool has_prefix = false;  // #
  char thousands = '\0';    // , or _
  int64_t width = 0;
  std::optional<int64_t> precision;
  char type = '\0';
};

// Throws on a type that the value has not.
void format_value(Runtime& runtime, const Value& value, const FormatSpec& spec, TextBuilder& out);
void pad(Runtime& runtime, const Text& text, std::string_view fill, char align, int64_t width,
         TextBuilder& out);
// Digits at `at`, and past them; an error beyond what any format can need.
int64_t read_size(Runtime& runtime, std::string_view bytes, size_t& at);

Value percent_format(Runtime& runtime, const Text& format, const Value& values);  // format % values
Value brace_format(Runtime& runtime, const Text& format, const Args& args);       // format.format(...)

}  // namespace minfer::jinja
