// Statements.
#include <fmt/format.h>

#include "core/jinja/interpreter.h"

namespace minfer::jinja {

Scope* Interpreter::new_scope(Scope* parent) {
  auto* scope = runtime_.make<Scope>();
  scope->parent = parent;
  return scope;
}

Interpreter::Flow Interpreter::execute(const Body& body) {
  const Descent descent = descend_node();
  for (const auto& statement : body) {
    const Flow flow = execute(*statement);
    if (flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

Interpreter::Flow Interpreter::execute(const Statement& statement) {
  runtime_.set_place(statement.offset);
  runtime_.step();
  switch (statement.kind) {
    case StatementKind::kData:
      out_->add(static_cast<const DataStatement&>(statement).bytes);
      return Flow::kNext;
    case StatementKind::kOutput: {
      const Value value = evaluate(*static_cast<const SimpleStatement&>(statement).expression);
      runtime_.set_place(statement.offset);
      out_->add(*to_text(runtime_, value));
      return Flow::kNext;
    }
    case StatementKind::kIf:
      return execute_if(static_cast<const IfStatement&>(statement));
    case StatementKind::kFor:
      return execute_for(static_cast<const ForStatement&>(statement));
    case StatementKind::kSet: {
      const auto& set = static_cast<const SetStatement&>(statement);
      assign(set.target, evaluate(*set.value));
      return Flow::kNext;
    }
    case StatementKind::kSetBlock:
      return execute_set_block(static_cast<const SetBlock&>(statement));
    case StatementKind::kMacro:
      define_macro(static_cast<const MacroStatement&>(statement));
      return Flow::kNext;
    case StatementKind::kCallBlock:
      execute_call_block(static_cast<const CallBlock&>(statement));
      return Flow::kNext;
    case StatementKind::kFilterBlock:
      return execute_filter_block(static_cast<const FilterBlock&>(statement));
    case StatementKind::kWith:
      return execute_with(static_cast<const WithStatement&>(statement));
    case StatementKind::kDo:
      evaluate(*static_cast<const SimpleStatement&>(statement).expression);
      return Flow::kNext;
    case StatementKind::kBreak:
      return Flow::kBreak;
    case StatementKind::kContinue:
      return Flow::kContinue;
  }
  return Flow::kNext;
}

Interpreter::Flow Interpreter::execute_in_scope(const Body& body) {
  Scope* const around = std::exchange(scope_, new_scope(scope_));
  const Flow flow = execute(body);
  scope_ = around;
  return flow;
}

Interpreter::Flow Interpreter::capture(const Body& body, Value& written) {
  TextBuilder builder(runtime_);
  TextBuilder* const around = std::exchange(out_, &builder);
  const Flow flow = execute_in_scope(body);
  out_ = around;
  written = Value::text(builder.finish());
  return flow;
}

// No scope of its own: what a branch sets, stays.
Interpreter::Flow Interpreter::execute_if(const IfStatement& statement) {
  for (const IfStatement::Branch& branch : statement.branches) {
    if (truthy(evaluate(*branch.condition))) return execute(branch.body);
  }
  return execute(statement.otherwise);
}

Interpreter::Flow Interpreter::execute_for(const ForStatement& statement) {
  const Value iterable = evaluate(*statement.iterable);
  runtime_.set_place(statement.iterable->offset);
  return run_loop(statement, iterable, scope_, 0);
}

std::vector<Value> Interpreter::loop_items(const ForStatement& statement, const Value& iterable) {
  std::vector<Value> items = iterate(runtime_, iterable);
  if (!statement.condition) return items;
  Scope* const around = std::exchange(scope_, new_scope(scope_));
  std::vector<Value> kept;
  for (const Value& item : items) {
    assign(statement.target, item);
    if (truthy(evaluate(*statement.condition))) kept.push_back(item);
  }
  scope_ = around;
  return kept;
}

Interpreter::Flow Interpreter::run_loop(const ForStatement& statement, const Value& iterable, Scope* around,
                                        int depth) {
  Scope* const scope_before = std::exchange(scope_, around);
  auto* loop = runtime_.make<Loop>();
  loop->statement = &statement;
  loop->scope = around;
  loop->depth = depth;
  loop->items = loop_items(statement, iterable);
  runtime_.take_bytes(loop->items.size() * sizeof(Value));
  scope_ = new_scope(around);
  bool has_completed = false;  // As in Jinja2, "else" is for loops of which no round came to its end.
  for (; loop->index < loop->items.size(); ++loop->index) {
    scope_->variables.clear();  // an item sees nothing that an earlier one set
    scope_->set(program_.loop, Value::loop(loop));
    assign(statement.target, loop->items[loop->index]);
    const Flow flow = execute(statement.body);
    has_completed |= flow == Flow::kNext;
    if (flow == Flow::kBreak) break;
  }
  scope_ = around;
  const Flow flow = has_completed ? Flow::kNext : execute_in_scope(statement.otherwise);
  scope_ = scope_before;
  return flow;
}

Interpreter::Flow Interpreter::execute_set_block(const SetBlock& statement) {
  Value text;
  const Flow flow = capture(statement.body, text);
  if (flow != Flow::kNext) return flow;
  block_text_ = text;
  assign(statement.target, statement.filters ? evaluate(*statement.filters) : text);
  return Flow::kNext;
}

Interpreter::Flow Interpreter::execute_filter_block(const FilterBlock& statement) {
  Value text;
  const Flow flow = capture(statement.body, text);
  if (flow != Flow::kNext) return flow;
  block_text_ = text;
  out_->add(*to_text(runtime_, evaluate(*statement.filters)));
  return Flow::kNext;
}

Interpreter::Flow Interpreter::execute_with(const WithStatement& statement) {
  std::vector<Value> values;
  for (const auto& assignment : statement.assignments) values.push_back(evaluate(*assignment.second));
  Scope* const around = std::exchange(scope_, new_scope(scope_));
  for (size_t i = 0; i < values.size(); ++i) assign(statement.assignments[i].first, values[i]);
  const Flow flow = execute(statement.body);
  scope_ = around;
  return flow;
}

void Interpreter::define_macro(const MacroStatement& statement) {
  auto* callable = runtime_.make<Callable>();
  callable->name = statement.macro.name;
  callable->macro = &statement.macro;
  callable->scope = scope_;
  scope_->set(statement.name, Value::callable(callable));
}

void Interpreter::execute_call_block(const CallBlock& statement) {
  auto* caller = runtime_.make<Callable>();
  caller->name = statement.caller.name;
  caller->macro = &statement.caller;
  caller->scope = scope_;
  const Value result = evaluate_call(static_cast<const Call&>(*statement.call), caller);
  out_->add(*to_text(runtime_, result));
}

void Interpreter::assign(const Target& target, const Value& value) {
  runtime_.set_place(target.offset);
  switch (target.type) {
    case Target::Type::kName:
      runtime_.look_through(scope_->variables.size());
      scope_->set(target.name, value);
      return;
    case Target::Type::kTuple:
      return unpack(target, value);
    case Target::Type::kAttribute:
      break;
  }
  const Value name_space = evaluate_name(target.name);
  if (name_space.is_undefined()) fail_undefined(runtime_, name_space);
  if (!name_space.is(Kind::kNamespace))
    runtime_.fail("cannot assign to an attribute of what is no namespace");
  runtime_.set(name_space.as_dict(), target.attribute, value);
}

void Interpreter::unpack(const Target& target, const Value& value) {
  const std::vector<Value> items = iterate(runtime_, value);
  if (items.size() != target.items.size()) {
    runtime_.fail(fmt::format("cannot unpack {} values into {} names", items.size(), target.items.size()));
  }
  for (size_t i = 0; i < items.size(); ++i) assign(target.items[i], items[i]);
}

}  // namespace minfer::jinja
