// Calls: functions, methods, macros and recursive loops.
#include <fmt/format.h>

#include <algorithm>

#include "core/jinja/interpreter.h"

namespace minfer::jinja {

Value Interpreter::evaluate_call(const Call& call, const Callable* caller) {
  const auto with_caller = [&](EvaluatedArgs args) {
    if (caller) args.named.push_back({"caller", Value::callable(caller)});
    return args;
  };
  if (call.callee->kind == ExprKind::kAttribute) {
    // A method at once, without a value of its own.
    const auto& attribute = static_cast<const Attribute&>(*call.callee);
    const Value object = evaluate(*attribute.object);
    const Method method = find_method(object.kind(), attribute.name);
    runtime_.set_place(attribute.offset);
    const Value callee = method ? Value() : get_attribute(runtime_, object, attribute.name);
    EvaluatedArgs args = with_caller(evaluate_arguments(call.arguments));
    runtime_.set_place(attribute.offset);
    return method ? method(runtime_, object, args.view()) : call_value(callee, std::move(args));
  }
  const Value callee = evaluate(*call.callee);
  EvaluatedArgs args = with_caller(evaluate_arguments(call.arguments));
  runtime_.set_place(call.offset);
  return call_value(callee, std::move(args));
}

Interpreter::EvaluatedArgs Interpreter::evaluate_arguments(const Arguments& arguments) {
  EvaluatedArgs args;
  args.positional.reserve(arguments.positional.size());
  for (const ExprPtr& argument : arguments.positional) args.positional.push_back(evaluate(*argument));
  for (const auto& [name, argument] : arguments.named) args.named.push_back({name, evaluate(*argument)});
  if (arguments.more_positional) {
    const std::vector<Value> more = iterate(runtime_, evaluate(*arguments.more_positional));
    args.positional.insert(args.positional.end(), more.begin(), more.end());
  }
  if (arguments.more_named) spread_named(evaluate(*arguments.more_named), args);
  return args;
}

void Interpreter::spread_named(const Value& more, EvaluatedArgs& args) {
  if (!more.is(Kind::kDict)) {
    runtime_.fail(fmt::format("an argument after ** must be a mapping, not {}", type_name(more)));
  }
  runtime_.step(more.as_dict().entries.size());
  for (const auto& [key, value] : more.as_dict().entries) {
    if (!key.is_text()) runtime_.fail("keywords must be strings");
    args.named.push_back({key.as_text().bytes, value});
  }
}

Value Interpreter::call_value(const Value& callee, EvaluatedArgs args) {
  if (callee.is_undefined()) fail_undefined(runtime_, callee);
  if (callee.is(Kind::kLoop)) return call_loop(callee.as_loop(), args);
  if (!callee.is(Kind::kCallable)) {
    runtime_.fail(fmt::format("'{}' object is not callable", type_name(callee)));
  }
  const Callable& callable = callee.as_callable();
  if (callable.function) return callable.function(runtime_, args.view());
  if (callable.method) return callable.method(runtime_, callable.self, args.view());
  return call_macro(callable, std::move(args));
}

Value Interpreter::call_macro(const Callable& callable, EvaluatedArgs args) {
  const Descent descent = descend_call();
  Scope* const scope_around = std::exchange(scope_, new_scope(callable.scope));
  TextBuilder written(runtime_);
  TextBuilder* const out_around = std::exchange(out_, &written);
  bind_parameters(*callable.macro, args, *scope_);
  execute(callable.macro->body);
  out_ = out_around;
  scope_ = scope_around;
  return Value::text(written.finish());
}

// Takes what it binds out of args.named; defaults may speak of the parameters before them.
void Interpreter::bind_parameters(const Macro& macro, EvaluatedArgs& args, Scope& scope) {
  size_t n_bound = 0;
  for (const Parameter& parameter : macro.parameters) {
    const std::string& name = program_.names[parameter.name];
    runtime_.look_through(args.named.size() + scope.variables.size());
    const auto named = std::find_if(args.named.begin(), args.named.end(),
                                    [&](const NamedValue& argument) { return argument.name == name; });
    if (n_bound < args.positional.size()) {
      if (named != args.named.end()) {
        runtime_.fail(fmt::format("macro '{}' got multiple values for argument '{}'", macro.name, name));
      }
      scope.set(parameter.name, args.positional[n_bound++]);
    } else if (named != args.named.end()) {
      scope.set(parameter.name, named->value);
      args.named.erase(named);
    } else if (parameter.fallback) {
      scope.set(parameter.name, evaluate(*parameter.fallback));
    } else {
      scope.set(parameter.name, runtime_.undefined(fmt::format("parameter '{}' was not provided", name)));
    }
  }
  args.positional.erase(args.positional.begin(),
                        args.positional.begin() + static_cast<std::ptrdiff_t>(n_bound));
  bind_rest(macro, args, scope);
}

void Interpreter::bind_rest(const Macro& macro, EvaluatedArgs& args, Scope& scope) {
  if (macro.takes_caller) {
    const auto caller = std::find_if(args.named.begin(), args.named.end(),
                                     [](const NamedValue& argument) { return argument.name == "caller"; });
    const bool is_given = caller != args.named.end();
    scope.set(program_.caller, is_given ? caller->value : runtime_.undefined("no caller defined"));
    if (is_given) args.named.erase(caller);
  }
  if (macro.takes_varargs) {
    scope.set(program_.varargs, Value::tuple(runtime_.new_list(std::move(args.positional))));
  } else if (!args.positional.empty()) {
    runtime_.fail(
        fmt::format("macro '{}' takes not more than {} argument(s)", macro.name, macro.parameters.size()));
  }
  if (macro.takes_kwargs) {
    Dict* rest = runtime_.new_dict();
    for (const NamedValue& argument : args.named) {
      runtime_.set(*rest, Value::text(runtime_.view(argument.name)), argument.value);
    }
    scope.set(program_.kwargs, Value::dict(rest));
  } else if (!args.named.empty()) {
    runtime_.fail(fmt::format("macro '{}' takes no keyword argument '{}'", macro.name, args.named[0].name));
  }
}

Value Interpreter::call_loop(const Loop& loop, const EvaluatedArgs& args) {
  if (!loop.statement->is_recursive) runtime_.fail("the loop is not marked as recursive");
  if (args.positional.size() != 1 || !args.named.empty()) runtime_.fail("loop() takes one argument");
  const Descent descent = descend_call();
  TextBuilder written(runtime_);
  TextBuilder* const out_around = std::exchange(out_, &written);
  run_loop(*loop.statement, args.positional[0], loop.scope, loop.depth + 1);
  out_ = out_around;
  return Value::text(written.finish());
}

}  // namespace minfer::jinja
