// Private to the interpreter: the values that can be called, and the loop variable.
#pragma once

#include <string_view>
#include <vector>

#include "core/jinja/value.h"

namespace minfer::jinja {

struct ForStatement;
struct Macro;
struct Scope;

// One of: a function; a method bound to `self`; a macro with the scope that it was defined in.
struct Callable {
  std::string_view name;
  Function function = nullptr;
  Method method = nullptr;
  Value self;
  const Macro* macro = nullptr;
  Scope* scope = nullptr;
};

// `loop` in a for statement.
struct Loop {
  const ForStatement* statement = nullptr;
  Scope* scope = nullptr;  // around the loop, for loop(...) of a recursive one
  std::vector<Value> items;
  size_t index = 0;
  int depth = 0;  // of recursion
  std::vector<Value> last_changed;
  bool has_changed = false;
};

// Tables of names; nullptr for one that is not there.
Method find_method(Kind kind, std::string_view name);
Function find_function(std::string_view name);

using Filter = Value (*)(Runtime& runtime, const Value& input, const Args& args);
using Test = bool (*)(Runtime& runtime, const Value& input, const Args& args);
Filter find_filter(std::string_view name);
Test find_test(std::string_view name);

}  // namespace minfer::jinja
