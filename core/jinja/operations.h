// Private to the interpreter: what Python does with any two values. Every failure is Runtime::fail; every
// walk through nested values is bounded in depth and pays a step an item.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/jinja/runtime.h"

namespace minfer::jinja {

std::string_view type_name(const Value& value);  // Python's: str, int, NoneType, ...
bool truthy(const Value& value);
[[noreturn]] void fail_undefined(Runtime& runtime, const Value& value);

// compare.cpp. Numbers are compared exactly, never through a rounded double.
std::partial_ordering compare_numbers(const Value& a, const Value& b);
bool equal(Runtime& runtime, const Value& a, const Value& b);
bool less(Runtime& runtime, const Value& a, const Value& b);
bool contains(Runtime& runtime, const Value& container, const Value& item);
enum class CompareOp { kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual, kIn, kNotIn };
bool compare(Runtime& runtime, CompareOp op, const Value& a, const Value& b);
void require_hashable(Runtime& runtime, const Value& key);
Value* find_key(Runtime& runtime, Dict& dict, const Value& key);
// From a mapping, or from pairs.
void update_dict(Runtime& runtime, Dict& dict, const Value& more);

// access.cpp
std::vector<Value> iterate(Runtime& runtime, const Value& value);                   // a snapshot
std::optional<int64_t> length(const Value& value);                                  // nothing: it has none
Value get_attribute(Runtime& runtime, const Value& object, std::string_view name);  // object.name
Value get_item(Runtime& runtime, const Value& object, const Value& key);            // object[key]
Value get_slice(Runtime& runtime, const Value& object, const Value& start, const Value& stop,
                const Value& step);
// The attribute that filters name: "a.b.0", or any key. `fallback` takes the place of what is missing on the
// way; None: nothing does.
Value get_path(Runtime& runtime, const Value& object, const Value& path, const Value& fallback = {});

// arithmetic.cpp. Python's integers have no end: a result beyond 64 bits is an error here.
enum class ArithmeticOp { kAdd, kSubtract, kMultiply, kDivide, kFloorDivide, kModulo, kPower };
Value arithmetic(Runtime& runtime, ArithmeticOp op, const Value& a, const Value& b);
Value negate(Runtime& runtime, const Value& a);
Value require_number(Runtime& runtime, const Value& a, std::string_view op);
std::optional<int64_t> parse_integer(std::string_view text, int base);  // int(text, base), in 64 bits
std::optional<double> parse_real(std::string_view text);                // float(text)
std::optional<int64_t> to_integer(double value);                        // towards zero

// repr.cpp
const Text* to_text(Runtime& runtime, const Value& value);  // str(value)
const Text* to_repr(Runtime& runtime, const Value& value);  // repr(value)
std::string repr_bytes(Runtime& runtime, const Value& value);
std::string real_repr(double value);  // the shortest digits that read back as the value
std::string quoted(std::string_view bytes);

}  // namespace minfer::jinja
