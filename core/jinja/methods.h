// Private to the interpreter: tables of the methods that values have, each sorted by name.
#pragma once

#include <span>
#include <string_view>

#include "core/jinja/value.h"

namespace minfer::jinja {

struct NamedMethod {
  std::string_view name;
  Method method;
};

std::span<const NamedMethod> string_methods();
std::span<const NamedMethod> list_methods();
std::span<const NamedMethod> tuple_methods();
std::span<const NamedMethod> dict_methods();
std::span<const NamedMethod> loop_methods();

}  // namespace minfer::jinja
