// Jinja as chat templates use it (Ronacher, Jinja2; the model hubs' set-up: trim_blocks, lstrip_blocks, loop
// controls). Lexer, parser and evaluator apart; templates come from strangers, so that everything is limited.
#pragma once

#include <ctime>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "core/byte_range.h"

namespace minfer::jinja {

struct Program;  // the parsed template, ast.h

struct Limits {
  uint64_t n_steps = 2'000'000;              // nodes evaluated
  size_t n_bytes = size_t{16} << 20;         // of output, and of any one string
  size_t n_total_bytes = size_t{256} << 20;  // of all strings and lists made on the way
  int depth = 100;                           // of calls, and of values in values
};

// line and column count from 1. `raised`: the template's own raise_exception, whose message is what() alone.
class Error : public std::runtime_error {
 public:
  Error(const std::string& message, int line, int column, bool raised = false);
  int line() const { return line_; }
  int column() const { return column_; }
  bool raised() const { return raised_; }
  const std::string& message() const { return message_; }  // without the position

 private:
  std::string message_;
  int line_, column_;
  bool raised_;
};

struct Rendered {
  std::string text;
  std::vector<ByteRange> input;  // bytes that came out of the variables marked as input: ascending, disjoint
};

class Template {
 public:
  explicit Template(std::string_view source);  // throws Error
  ~Template();
  Template(Template&&) noexcept;

  // `input`: an object, variables whose strings are users' text (but for a name under a key "role") and are
  // followed through every operation; `variables`: an object, the others. Throws Error.
  Rendered render(const nlohmann::ordered_json& input, const nlohmann::ordered_json& variables,
                  const std::tm& now, const Limits& limits = {}) const;

 private:
  std::unique_ptr<const Program> program_;
};

}  // namespace minfer::jinja
