#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/jinja/interpreter.h"

namespace minfer::jinja {

Value* Scope::find_here(NameId name) {
  for (auto& [id, value] : variables) {
    if (id == name) return &value;
  }
  return nullptr;
}

void Scope::set(NameId name, const Value& value) {
  if (Value* known = find_here(name)) {
    *known = value;
  } else {
    variables.emplace_back(name, value);
  }
}

Interpreter::Descent::Descent(Interpreter& interpreter, int& level, int most) : level_(level) {
  if (level >= most) {
    interpreter.runtime_.fail(
        fmt::format("calls nested more than {} deep", interpreter.runtime_.limits().depth));
  }
  ++level_;
}

Interpreter::Interpreter(const Program& program, Runtime& runtime, const nlohmann::ordered_json& input,
                         const nlohmann::ordered_json& variables)
    : program_(program), runtime_(runtime) {
  globals_.resize(program.names.size());
  is_global_.resize(program.names.size(), true);
  for (size_t i = 0; i < program.names.size(); ++i) {
    const std::string& name = program.names[i];
    if (const auto found = input.find(name); found != input.end()) {
      globals_[i] = from_json(runtime, *found, true);
    } else if (const auto other = variables.find(name); other != variables.end()) {
      globals_[i] = from_json(runtime, *other, false);
    } else if (const Function function = find_function(name)) {
      auto* callable = runtime.make<Callable>();
      callable->name = name;
      callable->function = function;
      globals_[i] = Value::callable(callable);
    } else {
      is_global_[i] = false;
    }
  }
}

void Interpreter::run(TextBuilder& out) {
  out_ = &out;
  execute(program_.body);
}

Value Interpreter::evaluate(const Expr& expr) {
  const Descent descent = descend_node();
  runtime_.set_place(expr.offset);
  runtime_.step();
  switch (expr.kind) {
    case ExprKind::kLiteral:
      return static_cast<const Literal&>(expr).value;
    case ExprKind::kName:
      return evaluate_name(static_cast<const Name&>(expr).name);
    case ExprKind::kSequence:
      return evaluate_sequence(static_cast<const Sequence&>(expr));
    case ExprKind::kDict:
      return evaluate_dict(static_cast<const DictExpr&>(expr));
    case ExprKind::kAttribute:
      return evaluate_attribute(static_cast<const Attribute&>(expr));
    case ExprKind::kSubscript:
      return evaluate_subscript(static_cast<const Subscript&>(expr));
    case ExprKind::kSlice:
      return evaluate_slice(static_cast<const Slice&>(expr));
    case ExprKind::kCall:
      return evaluate_call(static_cast<const Call&>(expr));
    case ExprKind::kFilter:
      return evaluate_filter(static_cast<const FilterExpr&>(expr));
    case ExprKind::kTest:
      return evaluate_test(static_cast<const TestExpr&>(expr));
    case ExprKind::kNegate:
    case ExprKind::kPlus:
      return evaluate_sign(static_cast<const Unary&>(expr));
    case ExprKind::kNot:
      return Value::boolean(!truthy(evaluate(*static_cast<const Unary&>(expr).operand)));
    case ExprKind::kArithmetic:
      return evaluate_arithmetic(static_cast<const Arithmetic&>(expr));
    case ExprKind::kConcat:
      return evaluate_concat(static_cast<const Chain&>(expr));
    case ExprKind::kCompare:
      return evaluate_compare(static_cast<const Compare&>(expr));
    case ExprKind::kAnd:
    case ExprKind::kOr:
      return evaluate_logic(static_cast<const Chain&>(expr));
    case ExprKind::kConditional:
      return evaluate_conditional(static_cast<const Conditional&>(expr));
  }
  return {};
}

Value Interpreter::evaluate_name(NameId name) {
  for (Scope* scope = scope_; scope; scope = scope->parent) {
    runtime_.look_through(scope->variables.size());
    if (const Value* found = scope->find_here(name)) return *found;
  }
  if (is_global_[name]) return globals_[name];
  return runtime_.undefined(fmt::format("'{}' is undefined", program_.names[name]));
}

Value Interpreter::evaluate_sequence(const Sequence& sequence) {
  List* list = runtime_.new_list();
  for (const ExprPtr& item : sequence.items) runtime_.append(*list, evaluate(*item));
  return sequence.is_tuple ? Value::tuple(list) : Value::list(list);
}

Value Interpreter::evaluate_dict(const DictExpr& dict) {
  Dict* made = runtime_.new_dict();
  for (const auto& [key_expr, value_expr] : dict.items) {
    const Value key = evaluate(*key_expr);
    require_hashable(runtime_, key);
    runtime_.set(*made, key, evaluate(*value_expr));
  }
  return Value::dict(made);
}

Value Interpreter::evaluate_attribute(const Attribute& attribute) {
  const Value object = evaluate(*attribute.object);
  runtime_.set_place(attribute.offset);
  return get_attribute(runtime_, object, attribute.name);
}

Value Interpreter::evaluate_subscript(const Subscript& subscript) {
  const Value object = evaluate(*subscript.object);
  const Value key = evaluate(*subscript.key);
  runtime_.set_place(subscript.offset);
  return get_item(runtime_, object, key);
}

Value Interpreter::evaluate_slice(const Slice& slice) {
  const auto part = [&](const ExprPtr& expr) { return expr ? evaluate(*expr) : Value(); };
  const Value object = evaluate(*slice.object);
  const Value start = part(slice.start), stop = part(slice.stop), step = part(slice.step);
  runtime_.set_place(slice.offset);
  return get_slice(runtime_, object, start, stop, step);
}

Value Interpreter::evaluate_filter(const FilterExpr& filter) {
  const Value input = filter.input ? evaluate(*filter.input) : block_text_;
  const EvaluatedArgs args = evaluate_arguments(filter.arguments);
  runtime_.set_place(filter.offset);
  if (!filter.filter) runtime_.fail(fmt::format("no filter named '{}'", filter.name));
  return filter.filter(runtime_, input, args.view());
}

Value Interpreter::evaluate_test(const TestExpr& test) {
  const Value input = evaluate(*test.input);
  const EvaluatedArgs args = evaluate_arguments(test.arguments);
  runtime_.set_place(test.offset);
  if (!test.test) runtime_.fail(fmt::format("no test named '{}'", test.name));
  return Value::boolean(test.test(runtime_, input, args.view()) != test.is_negated);
}

Value Interpreter::evaluate_sign(const Unary& sign) {
  const Value operand = evaluate(*sign.operand);
  runtime_.set_place(sign.offset);
  return sign.kind == ExprKind::kNegate ? negate(runtime_, operand)
                                        : require_number(runtime_, operand, "unary +");
}

Value Interpreter::evaluate_arithmetic(const Arithmetic& chain) {
  Value result = evaluate(*chain.first);
  for (const Arithmetic::Step& step : chain.steps) {
    const Value operand = evaluate(*step.operand);
    runtime_.set_place(step.offset);
    result = arithmetic(runtime_, step.op, result, operand);
  }
  return result;
}

Value Interpreter::evaluate_concat(const Chain& chain) {
  std::vector<Value> operands;
  for (const ExprPtr& operand : chain.operands) operands.push_back(evaluate(*operand));
  runtime_.set_place(chain.offset);
  TextBuilder joined(runtime_);
  for (const Value& operand : operands) joined.add(*to_text(runtime_, operand));
  return Value::text(joined.finish());
}

Value Interpreter::evaluate_compare(const Compare& comparison) {
  Value left = evaluate(*comparison.first);
  for (const Compare::Step& step : comparison.steps) {
    const Value right = evaluate(*step.operand);
    runtime_.set_place(step.offset);
    if (!compare(runtime_, step.op, left, right)) return Value::boolean(false);
    left = right;
  }
  return Value::boolean(true);
}

// As in Python, the operand that decided it.
Value Interpreter::evaluate_logic(const Chain& chain) {
  const bool stops_at = chain.kind == ExprKind::kOr;
  Value result;
  for (const ExprPtr& operand : chain.operands) {
    result = evaluate(*operand);
    if (truthy(result) == stops_at) break;
  }
  return result;
}

Value Interpreter::evaluate_conditional(const Conditional& conditional) {
  if (truthy(evaluate(*conditional.condition))) return evaluate(*conditional.then);
  if (conditional.otherwise) return evaluate(*conditional.otherwise);
  return runtime_.undefined("the inline if was false and has no else");
}

}  // namespace minfer::jinja
