// Private to the interpreter: the values of a rendering. A value is 16 bytes that own nothing: what it points
// to belongs to the runtime's arena and dies with the rendering, so that lists may contain themselves.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/jinja/text.h"

namespace minfer::jinja {

enum class Kind : uint8_t {
  kUndefined,
  kNone,
  kBool,
  kInt,
  kFloat,
  kText,
  kList,
  kTuple,
  kDict,
  kNamespace,
  kLoop,
  kCallable,
};

struct List;
struct Dict;
struct Loop;
struct Callable;

// Why a value is undefined; said when it is used.
struct Missing {
  std::string message;
};

class Value {
 public:
  Value() = default;  // None
  static Value undefined(const Missing* why) { return Value(Kind::kUndefined, why); }
  static Value boolean(bool value);
  static Value integer(int64_t value);
  static Value real(double value);
  static Value text(const Text* value) { return Value(Kind::kText, value); }
  static Value list(List* value) { return Value(Kind::kList, value); }
  static Value tuple(List* value) { return Value(Kind::kTuple, value); }
  static Value dict(Dict* value) { return Value(Kind::kDict, value); }
  static Value name_space(Dict* value) { return Value(Kind::kNamespace, value); }
  static Value loop(Loop* value) { return Value(Kind::kLoop, value); }
  static Value callable(const Callable* value) { return Value(Kind::kCallable, value); }

  Kind kind() const { return kind_; }
  bool is(Kind kind) const { return kind_ == kind; }
  bool is_undefined() const { return is(Kind::kUndefined); }
  bool is_none() const { return is(Kind::kNone); }
  bool is_text() const { return is(Kind::kText); }
  bool is_sequence() const { return is(Kind::kList) || is(Kind::kTuple); }
  bool is_integral() const { return is(Kind::kInt) || is(Kind::kBool); }  // as in Python, True is 1
  bool is_number() const { return is_integral() || is(Kind::kFloat); }

  // Each for its own kind only.
  const Missing& as_missing() const { return *static_cast<const Missing*>(pointer_); }
  bool as_bool() const { return integer_ != 0; }
  int64_t as_int() const { return integer_; }  // of a bool too
  double as_real() const { return is(Kind::kFloat) ? real_ : static_cast<double>(integer_); }
  const Text& as_text() const { return *static_cast<const Text*>(pointer_); }
  List& as_list() const { return *static_cast<List*>(const_cast<void*>(pointer_)); }
  Dict& as_dict() const { return *static_cast<Dict*>(const_cast<void*>(pointer_)); }  // of a namespace too
  Loop& as_loop() const { return *static_cast<Loop*>(const_cast<void*>(pointer_)); }
  const Callable& as_callable() const { return *static_cast<const Callable*>(pointer_); }
  const void* identity() const { return pointer_; }  // of what the value points to

 private:
  Value(Kind kind, const void* pointer) : kind_(kind), pointer_(pointer) {}

  Kind kind_ = Kind::kNone;
  union {
    int64_t integer_ = 0;
    double real_;
    const void* pointer_;
  };
};

struct List {
  std::vector<Value> items;
  std::span<const std::string_view> fields;  // names of the items, where a tuple has them
};

// A total order of hashable values that agrees with Python's ==: 1, 1.0 and True are one key.
struct KeyLess {
  bool operator()(const Value& a, const Value& b) const;
};

// In insertion order. Keys must have passed require_hashable (operations.h).
struct Dict {
  std::vector<std::pair<Value, Value>> entries;

  Value* find(const Value& key);
  Value* find(std::string_view key);
  void set(const Value& key, const Value& value);
  bool erase(const Value& key);
  void clear();

 private:
  size_t position(const Value& key);  // entries.size() where it is not

  static constexpr size_t kSmall = 8;       // as many are looked through
  std::map<Value, size_t, KeyLess> index_;  // of larger ones; empty: to be built
};

struct NamedValue {
  std::string_view name;
  Value value;
};

// Arguments of a call, positional and by name.
struct Args {
  std::span<const Value> positional;
  std::span<const NamedValue> named;
};

using Method = Value (*)(Runtime& runtime, const Value& self, const Args& args);
using Function = Value (*)(Runtime& runtime, const Args& args);

}  // namespace minfer::jinja
