#include <fmt/format.h>

#include <algorithm>

#include "core/jinja/parser.h"

namespace minfer::jinja {
namespace {

constexpr std::string_view kReserved[] = {"true", "false", "none", "True", "False", "None", "and",
                                          "or",   "not",   "in",   "is",   "if",    "else", "elif"};

bool names(const Target& target, NameId name) {
  if (target.type == Target::Type::kName) return target.name == name;
  return std::any_of(target.items.begin(), target.items.end(),
                     [&](const Target& item) { return names(item, name); });
}

}  // namespace

Body Parser::parse_body(Node& parent, std::string_view opener, Ends ends) {
  const Nesting nesting(*this);
  const uint32_t opened_at = parent.offset;
  Body body;
  while (true) {
    const Token& token = peek();
    switch (token.type) {
      case TokenType::kEnd:
        if (ends.size() == 0) return body;
        fail(opened_at, fmt::format("'{}' without its '{}'", opener, *(ends.end() - 1)));
      case TokenType::kData: {
        auto data = node<DataStatement>(token.offset);
        data->bytes = next().text;
        body.push_back(below(parent, std::move(data)));
        break;
      }
      case TokenType::kOutputBegin:
        body.push_back(below(parent, parse_output()));
        break;
      default: {  // a tag: inside one, its own parser has taken everything
        next();
        const bool is_end = std::any_of(ends.begin(), ends.end(), [&](auto end) { return sees_name(end); });
        if (is_end) return body;
        body.push_back(below(parent, parse_tag()));
      }
    }
  }
}

std::unique_ptr<Statement> Parser::parse_output() {
  auto output = node<SimpleStatement>(next().offset, StatementKind::kOutput);
  output->expression = below(*output, parse_tuple());
  if (peek().type != TokenType::kOutputEnd) fail_here("the end of the output");
  next();
  return output;
}

std::unique_ptr<Statement> Parser::parse_tag() {
  const uint32_t offset = peek().offset;
  const std::string_view tag = expect_any_name();
  if (tag == "if") return parse_if(offset);
  if (tag == "for") return parse_for(offset);
  if (tag == "set") return parse_set(offset);
  if (tag == "macro") return parse_macro(offset);
  if (tag == "call") return parse_call_block(offset);
  if (tag == "filter") return parse_filter_block(offset);
  if (tag == "with") return parse_with(offset);
  if (tag == "generation") return parse_generation(offset);
  if (tag == "break" || tag == "continue") return parse_loop_control(offset, tag == "break");
  if (tag == "do") {
    auto statement = node<SimpleStatement>(offset, StatementKind::kDo);
    statement->expression = below(*statement, parse_tuple());
    expect_tag_end();
    return statement;
  }
  fail(offset, fmt::format("unknown tag '{}'", tag));
}

std::unique_ptr<Statement> Parser::parse_if(uint32_t offset) {
  auto statement = node<IfStatement>(offset);
  while (true) {
    IfStatement::Branch branch;
    branch.condition = below(*statement, parse_tuple(false));
    expect_tag_end();
    branch.body = parse_body(*statement, "if", {"elif", "else", "endif"});
    statement->branches.push_back(std::move(branch));
    if (!skip_name("elif")) break;
  }
  if (skip_name("else")) {
    expect_tag_end();
    statement->otherwise = parse_body(*statement, "if", {"endif"});
  }
  expect_name("endif");
  expect_tag_end();
  return statement;
}

std::unique_ptr<Statement> Parser::parse_for(uint32_t offset) {
  auto statement = node<ForStatement>(offset);
  statement->target = parse_target(false);
  if (names(statement->target, program_->loop))
    fail(statement->target.offset, "cannot assign to 'loop' in a for");
  expect_name("in");
  statement->iterable = below(*statement, parse_tuple(false));
  if (skip_name("if")) statement->condition = below(*statement, parse_expression());
  statement->is_recursive = skip_name("recursive");
  expect_tag_end();
  ++n_loops_;
  statement->body = parse_body(*statement, "for", {"else", "endfor"});
  --n_loops_;
  if (skip_name("else")) {
    expect_tag_end();
    statement->otherwise = parse_body(*statement, "for", {"endfor"});
  }
  expect_name("endfor");
  expect_tag_end();
  return statement;
}

std::unique_ptr<Statement> Parser::parse_loop_control(uint32_t offset, bool is_break) {
  if (n_loops_ == 0) fail(offset, fmt::format("'{}' outside a loop", is_break ? "break" : "continue"));
  expect_tag_end();
  return node<SimpleStatement>(offset, is_break ? StatementKind::kBreak : StatementKind::kContinue);
}

std::unique_ptr<Statement> Parser::parse_set(uint32_t offset) {
  Target target = parse_target(true);
  if (skip_operator("=")) {
    auto statement = node<SetStatement>(offset);
    statement->target = std::move(target);
    statement->value = below(*statement, parse_tuple());
    expect_tag_end();
    return statement;
  }
  auto statement = node<SetBlock>(offset);
  statement->target = std::move(target);
  if (ExprPtr filters = parse_filter_chain()) statement->filters = below(*statement, std::move(filters));
  expect_tag_end();
  statement->body = parse_body(*statement, "set", {"endset"});
  expect_name("endset");
  expect_tag_end();
  return statement;
}

std::unique_ptr<Statement> Parser::parse_macro(uint32_t offset) {
  auto statement = node<MacroStatement>(offset);
  statement->macro.name = std::string(peek().text);
  statement->name = assignable_name();
  statement->macro.parameters = parse_parameters(*statement);
  expect_tag_end();
  parse_macro_body(*statement, statement->macro, "macro", "endmacro");
  expect_tag_end();
  return statement;
}

std::unique_ptr<Statement> Parser::parse_call_block(uint32_t offset) {
  auto statement = node<CallBlock>(offset);
  statement->caller.name = "caller";
  if (sees_operator("(")) statement->caller.parameters = parse_parameters(*statement);
  statement->call = below(*statement, parse_expression());
  if (statement->call->kind != ExprKind::kCall) fail(statement->call->offset, "expected a call");
  expect_tag_end();
  parse_macro_body(*statement, statement->caller, "call", "endcall");
  expect_tag_end();
  return statement;
}

std::unique_ptr<Statement> Parser::parse_filter_block(uint32_t offset) {
  auto statement = node<FilterBlock>(offset);
  statement->filters = below(*statement, parse_filter(nullptr));
  while (sees_operator("|")) {
    next();
    statement->filters = below(*statement, parse_filter(std::move(statement->filters)));
  }
  expect_tag_end();
  statement->body = parse_body(*statement, "filter", {"endfilter"});
  expect_name("endfilter");
  expect_tag_end();
  return statement;
}

std::unique_ptr<Statement> Parser::parse_with(uint32_t offset) {
  auto statement = node<WithStatement>(offset);
  while (peek().type != TokenType::kTagEnd) {
    if (!statement->assignments.empty()) expect_operator(",");
    Target target = parse_one_target(false);
    expect_operator("=");
    statement->assignments.emplace_back(std::move(target), below(*statement, parse_expression()));
  }
  expect_tag_end();
  statement->body = parse_body(*statement, "with", {"endwith"});
  expect_name("endwith");
  expect_tag_end();
  return statement;
}

// The model hubs' mark around what the model is trained to write: its body, in a scope of its own.
std::unique_ptr<Statement> Parser::parse_generation(uint32_t offset) {
  auto statement = node<WithStatement>(offset);
  expect_tag_end();
  statement->body = parse_body(*statement, "generation", {"endgeneration"});
  expect_name("endgeneration");
  expect_tag_end();
  return statement;
}

void Parser::parse_macro_body(Node& parent, Macro& macro, std::string_view opener, std::string_view end) {
  const int n_loops_around = std::exchange(n_loops_, 0);
  Macro* const macro_around = std::exchange(macro_, &macro);
  macro.body = parse_body(parent, opener, {end});
  n_loops_ = n_loops_around;
  macro_ = macro_around;
  expect_name(end);
}

std::vector<Parameter> Parser::parse_parameters(Node& parent) {
  std::vector<Parameter> parameters;
  expect_operator("(");
  while (!sees_operator(")")) {
    if (!parameters.empty()) expect_operator(",");
    const uint32_t offset = peek().offset;
    Parameter parameter{assignable_name(), nullptr};
    if (skip_operator("=")) {
      parameter.fallback = below(parent, parse_expression());
    } else if (!parameters.empty() && parameters.back().fallback) {
      fail(offset, "a parameter without a default after one with a default");
    }
    parameters.push_back(std::move(parameter));
  }
  expect_operator(")");
  return parameters;
}

NameId Parser::assignable_name() {
  const Token& token = peek();
  const std::string_view name = expect_any_name();
  if (std::find(std::begin(kReserved), std::end(kReserved), name) != std::end(kReserved)) {
    fail(token.offset, fmt::format("cannot assign to '{}'", name));
  }
  return intern(name);
}

Target Parser::parse_one_target(bool allows_namespace) {
  const Nesting nesting(*this);
  Target target;
  target.offset = peek().offset;
  if (skip_operator("(")) {
    target = parse_target(allows_namespace);
    expect_operator(")");
    return target;
  }
  target.name = assignable_name();
  if (allows_namespace && skip_operator(".")) {
    target.type = Target::Type::kAttribute;
    target.attribute = std::string(expect_any_name());
  }
  return target;
}

Target Parser::parse_target(bool allows_namespace) {
  const uint32_t offset = peek().offset;
  Target first = parse_one_target(allows_namespace);
  if (!sees_operator(",")) return first;
  Target tuple;
  tuple.type = Target::Type::kTuple;
  tuple.offset = offset;
  tuple.items.push_back(std::move(first));
  while (skip_operator(",")) {
    const bool is_end = peek().type == TokenType::kTagEnd || sees_operator(")") || sees_name("in");
    if (is_end) break;
    tuple.items.push_back(parse_one_target(allows_namespace));
  }
  return tuple;
}

}  // namespace minfer::jinja
