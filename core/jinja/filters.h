// Private to the interpreter: tables of the filters, each sorted by name.
#pragma once

#include <span>
#include <string_view>

#include "core/jinja/callable.h"

namespace minfer::jinja {

struct NamedFilter {
  std::string_view name;
  Filter filter;
};

std::span<const NamedFilter> text_filters();
std::span<const NamedFilter> number_filters();
std::span<const NamedFilter> sequence_filters();
std::span<const NamedFilter> selection_filters();

}  // namespace minfer::jinja
