// Private to the interpreter: walks the tree. Recursion is bounded by the parser's kMaxNesting within a
// macro, and by Limits::depth from call to call.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <utility>
#include <vector>

#include "core/jinja/ast.h"
#include "core/jinja/runtime.h"

namespace minfer::jinja {

// Names that a body sets; what it does not know, the bodies around it do.
struct Scope {
  Scope* parent = nullptr;
  std::vector<std::pair<NameId, Value>> variables;

  Value* find_here(NameId name);
  void set(NameId name, const Value& value);
};

class Interpreter {
 public:
  Interpreter(const Program& program, Runtime& runtime, const nlohmann::ordered_json& input,
              const nlohmann::ordered_json& variables);
  void run(TextBuilder& out);

 private:
  enum class Flow { kNext, kBreak, kContinue };

  struct EvaluatedArgs {
    std::vector<Value> positional;
    std::vector<NamedValue> named;
    Args view() const { return {positional, named}; }
  };

  // One level of nodes; of calls.
  class Descent {
   public:
    Descent(Interpreter& interpreter, int& level, int most);
    ~Descent() { --level_; }
    Descent(const Descent&) = delete;

   private:
    int& level_;
  };
  Descent descend_node() { return Descent(*this, node_level_, kNodesPerCall * runtime_.limits().depth); }
  Descent descend_call() { return Descent(*this, call_level_, runtime_.limits().depth); }

  // evaluate.cpp
  Value evaluate(const Expr& expr);
  Value evaluate_name(NameId name);
  Value evaluate_sequence(const Sequence& sequence);
  Value evaluate_dict(const DictExpr& dict);
  Value evaluate_attribute(const Attribute& attribute);
  Value evaluate_subscript(const Subscript& subscript);
  Value evaluate_slice(const Slice& slice);
  Value evaluate_filter(const FilterExpr& filter);
  Value evaluate_test(const TestExpr& test);
  Value evaluate_sign(const Unary& sign);
  Value evaluate_arithmetic(const Arithmetic& chain);
  Value evaluate_concat(const Chain& chain);
  Value evaluate_compare(const Compare& comparison);
  Value evaluate_logic(const Chain& chain);
  Value evaluate_conditional(const Conditional& conditional);

  // call.cpp
  Value evaluate_call(const Call& call, const Callable* caller = nullptr);
  EvaluatedArgs evaluate_arguments(const Arguments& arguments);
  void spread_named(const Value& more, EvaluatedArgs& args);
  Value call_value(const Value& callee, EvaluatedArgs args);
  Value call_macro(const Callable& callable, EvaluatedArgs args);
  Value call_loop(const Loop& loop, const EvaluatedArgs& args);
  void bind_parameters(const Macro& macro, EvaluatedArgs& args, Scope& scope);
  void bind_rest(const Macro& macro, EvaluatedArgs& args, Scope& scope);

  // execute.cpp
  Flow execute(const Body& body);
  Flow execute(const Statement& statement);
  Flow execute_in_scope(const Body& body);
  Flow execute_if(const IfStatement& statement);
  Flow execute_for(const ForStatement& statement);
  Flow run_loop(const ForStatement& statement, const Value& iterable, Scope* around, int depth);
  std::vector<Value> loop_items(const ForStatement& statement, const Value& iterable);
  Flow execute_set_block(const SetBlock& statement);
  Flow execute_filter_block(const FilterBlock& statement);
  Flow execute_with(const WithStatement& statement);
  void define_macro(const MacroStatement& statement);
  void execute_call_block(const CallBlock& statement);
  void assign(const Target& target, const Value& value);
  void unpack(const Target& target, const Value& value);
  // What `body` writes, in a scope of its own; nothing if it leaves a loop.
  Flow capture(const Body& body, Value& written);
  Scope* new_scope(Scope* parent);

  // A macro that calls itself passes a dozen nodes on the way; the stack holds as many for each call.
  static constexpr int kNodesPerCall = 16;

  const Program& program_;
  Runtime& runtime_;
  std::vector<Value> globals_;  // by NameId: the caller's variables and the functions
  std::vector<bool> is_global_;
  Scope root_;
  Scope* scope_ = &root_;
  TextBuilder* out_ = nullptr;
  Value block_text_;  // what the chain of filters of a block begins with
  int node_level_ = 0, call_level_ = 0;
};

// Strings are views into `json`, which outlives the rendering; all of theirs is the users' where is_input.
Value from_json(Runtime& runtime, const nlohmann::ordered_json& json, bool is_input);

}  // namespace minfer::jinja
