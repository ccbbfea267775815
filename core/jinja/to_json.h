// Private to the interpreter: JSON as Python's json.dumps writes it.
#pragma once

#include <string>
#include <string_view>

#include "core/jinja/runtime.h"

namespace minfer::jinja {

struct JsonStyle {
  bool ensures_ascii = false;  // the model hubs' default, not Python's
  bool sorts_keys = false;
  bool is_indented = false;
  std::string_view indent;  // a level, where is_indented
  std::string_view item_separator = ", ", key_separator = ": ";
};

const Text* to_json(Runtime& runtime, const Value& value, const JsonStyle& style);

}  // namespace minfer::jinja
