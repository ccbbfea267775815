// Private to the interpreter: the arguments of a filter, test, method or function, by the names of its
// parameters.
#pragma once

#include <array>
#include <initializer_list>
#include <string_view>

#include "core/jinja/operations.h"

namespace minfer::jinja {

class BoundArgs {
 public:
  // `callee` is for errors, `names` the parameters in order. An error: too many, an unknown name, one twice,
  // or fewer than the first n_required.
  BoundArgs(Runtime& runtime, std::string_view callee, const Args& args,
            std::initializer_list<std::string_view> names, size_t n_required = 0);

  bool has(size_t i) const { return is_given_[i]; }
  const Value& operator[](size_t i) const { return values_[i]; }  // None where it was not given
  // The value as what the callee takes; an error names the parameter.
  const Text& text(size_t i) const;
  std::string_view text_or(size_t i, std::string_view fallback) const;  // also for None
  int64_t integer(size_t i) const;
  int64_t integer_or(size_t i, int64_t fallback) const;
  bool truth_or(size_t i, bool fallback) const { return is_given_[i] ? truthy(values_[i]) : fallback; }

 private:
  static constexpr size_t kMost = 5;

  [[noreturn]] void fail_type(size_t i, std::string_view expected) const;

  Runtime& runtime_;
  std::string_view callee_;
  std::array<std::string_view, kMost> names_{};
  std::array<Value, kMost> values_{};
  std::array<bool, kMost> is_given_{};
};

}  // namespace minfer::jinja
