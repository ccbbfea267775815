#include <fmt/format.h>

#include <algorithm>

#include "core/jinja/parser.h"

namespace minfer::jinja {
namespace {

struct ArithmeticToken {
  std::string_view text;
  ArithmeticOp op;
  int level;  // the higher the tighter
};
constexpr ArithmeticToken kArithmeticTokens[] = {
    {"+", ArithmeticOp::kAdd, 0},    {"-", ArithmeticOp::kSubtract, 0},     {"*", ArithmeticOp::kMultiply, 1},
    {"/", ArithmeticOp::kDivide, 1}, {"//", ArithmeticOp::kFloorDivide, 1}, {"%", ArithmeticOp::kModulo, 1},
    {"**", ArithmeticOp::kPower, 2},
};

struct CompareToken {
  std::string_view text;
  CompareOp op;
};
constexpr CompareToken kCompareTokens[] = {
    {"==", CompareOp::kEqual},     {"!=", CompareOp::kNotEqual}, {"<", CompareOp::kLess},
    {"<=", CompareOp::kLessEqual}, {">", CompareOp::kGreater},   {">=", CompareOp::kGreaterEqual},
};

}  // namespace

// a if b else c, the loosest.
ExprPtr Parser::parse_expression(bool allows_condition) {
  const Nesting nesting(*this);
  ExprPtr result = parse_chain(ExprKind::kOr);
  while (allows_condition && sees_name("if")) {
    auto conditional = node<Conditional>(next().offset);
    conditional->then = below(*conditional, std::move(result));
    conditional->condition = below(*conditional, parse_chain(ExprKind::kOr));
    if (skip_name("else")) conditional->otherwise = below(*conditional, parse_expression());
    result = std::move(conditional);
  }
  return result;
}

bool Parser::is_tuple_end() const {
  const TokenType type = peek().type;
  return type == TokenType::kTagEnd || type == TokenType::kOutputEnd || sees_operator(")") ||
         sees_name("recursive");
}

ExprPtr Parser::parse_tuple(bool allows_condition, bool is_in_parentheses) {
  auto tuple = node<Sequence>(peek().offset);
  tuple->is_tuple = true;
  bool has_comma = false;
  while (!is_tuple_end()) {
    tuple->items.push_back(below(*tuple, parse_expression(allows_condition)));
    if (!skip_operator(",")) break;
    has_comma = true;
  }
  if (has_comma || (tuple->items.empty() && is_in_parentheses)) return tuple;
  if (tuple->items.empty()) fail_here("an expression");
  return std::move(tuple->items[0]);
}

// kOr: operands joined by "or", each a kAnd; kAnd: by "and".
ExprPtr Parser::parse_chain(ExprKind kind) {
  const bool is_or = kind == ExprKind::kOr;
  const auto operand = [&] { return is_or ? parse_chain(ExprKind::kAnd) : parse_not(); };
  ExprPtr first = operand();
  if (!sees_name(is_or ? "or" : "and")) return first;
  auto chain = node<Chain>(peek().offset, kind);
  chain->operands.push_back(below(*chain, std::move(first)));
  while (skip_name(is_or ? "or" : "and")) chain->operands.push_back(below(*chain, operand()));
  return chain;
}

ExprPtr Parser::parse_not() {
  if (!sees_name("not")) return parse_compare();
  const Nesting nesting(*this);
  auto negation = node<Unary>(next().offset, ExprKind::kNot);
  negation->operand = below(*negation, parse_not());
  return negation;
}

ExprPtr Parser::parse_compare() {
  ExprPtr first = parse_arithmetic(0);
  auto comparison = node<Compare>(first->offset);
  while (true) {
    const uint32_t offset = peek().offset;
    const auto* found = std::find_if(std::begin(kCompareTokens), std::end(kCompareTokens),
                                     [&](const CompareToken& token) { return sees_operator(token.text); });
    CompareOp op = CompareOp::kIn;
    if (found != std::end(kCompareTokens)) {
      op = found->op;
    } else if (sees_name("not") && sees_name("in", 1)) {
      op = CompareOp::kNotIn;
      next();
    } else if (!sees_name("in")) {
      break;
    }
    next();
    comparison->steps.push_back({op, offset, below(*comparison, parse_arithmetic(0))});
  }
  if (comparison->steps.empty()) return first;
  comparison->first = below(*comparison, std::move(first));
  return comparison;
}

// Level 0: + and -, whose operands "~" joins; 1: * / // %; 2: **, from the left as everything in Jinja.
ExprPtr Parser::parse_arithmetic(int level) {
  const auto operand = [&] {
    return level == 0 ? parse_concat() : level == 1 ? parse_arithmetic(2) : parse_unary();
  };
  ExprPtr first = operand();
  auto chain = node<Arithmetic>(first->offset);
  while (true) {
    const auto* found = std::find_if(
        std::begin(kArithmeticTokens), std::end(kArithmeticTokens),
        [&](const ArithmeticToken& token) { return token.level == level && sees_operator(token.text); });
    if (found == std::end(kArithmeticTokens)) break;
    const uint32_t offset = next().offset;
    chain->steps.push_back({found->op, offset, below(*chain, operand())});
  }
  if (chain->steps.empty()) return first;
  chain->first = below(*chain, std::move(first));
  return chain;
}

ExprPtr Parser::parse_concat() {
  ExprPtr first = parse_arithmetic(1);
  if (!sees_operator("~")) return first;
  auto concat = node<Chain>(peek().offset, ExprKind::kConcat);
  concat->operands.push_back(below(*concat, std::move(first)));
  while (skip_operator("~")) concat->operands.push_back(below(*concat, parse_arithmetic(1)));
  return concat;
}

// A sign binds tighter than a filter: -1|abs is (-1)|abs.
ExprPtr Parser::parse_unary(bool allows_filters) {
  const Nesting nesting(*this);
  if (!sees_operator("-") && !sees_operator("+")) return parse_postfix(parse_primary(), allows_filters);
  const ExprKind kind = sees_operator("-") ? ExprKind::kNegate : ExprKind::kPlus;
  auto sign = node<Unary>(next().offset, kind);
  sign->operand = below(*sign, parse_unary(false));
  return parse_postfix(std::move(sign), allows_filters);
}

ExprPtr Parser::parse_primary() {
  switch (peek().type) {
    case TokenType::kName:
      return parse_name();
    case TokenType::kString:
      return parse_string();
    case TokenType::kInteger:
    case TokenType::kFloat:
      return parse_number();
    default:
      break;
  }
  if (sees_operator("[")) return parse_list();
  if (sees_operator("{")) return parse_dict();
  if (!skip_operator("(")) fail_here("an expression");
  ExprPtr inner = parse_tuple(true, true);
  expect_operator(")");
  return inner;
}

ExprPtr Parser::parse_name() {
  const Token& token = next();
  const std::string_view text = token.text;
  auto literal = node<Literal>(token.offset);
  if (text == "none" || text == "None") return literal;
  const bool is_true = text == "true" || text == "True";
  if (is_true || text == "false" || text == "False") {
    literal->value = Value::boolean(is_true);
    return literal;
  }
  auto name = node<Name>(token.offset);
  name->name = intern(text);
  if (macro_) {
    macro_->takes_varargs |= name->name == program_->varargs;
    macro_->takes_kwargs |= name->name == program_->kwargs;
    macro_->takes_caller |= name->name == program_->caller;
  }
  return name;
}

// Adjacent literals are one.
ExprPtr Parser::parse_string() {
  auto literal = node<Literal>(peek().offset);
  while (peek().type == TokenType::kString) {
    literal->bytes += unescape(program_->source, peek().text, peek().offset);
    next();
  }
  literal->text.bytes = literal->bytes;
  count_chars(literal->text);  // now: renderings may share it
  literal->value = Value::text(&literal->text);
  return literal;
}

ExprPtr Parser::parse_number() {
  const Token& token = next();
  auto literal = node<Literal>(token.offset);
  if (token.type == TokenType::kFloat) {
    const auto value = parse_real(token.text);
    if (!value) fail(token.offset, fmt::format("'{}' is no number", token.text));
    literal->value = Value::real(*value);
  } else {
    const auto value = parse_integer(token.text, 0);
    if (!value) fail(token.offset, fmt::format("'{}' is no integer of 64 bits", token.text.substr(0, 40)));
    literal->value = Value::integer(*value);
  }
  return literal;
}

ExprPtr Parser::parse_list() {
  auto list = node<Sequence>(next().offset);
  while (!sees_operator("]")) {
    list->items.push_back(below(*list, parse_expression()));
    if (!skip_operator(",")) break;
  }
  expect_operator("]");
  return list;
}

ExprPtr Parser::parse_dict() {
  auto dict = node<DictExpr>(next().offset);
  while (!sees_operator("}")) {
    ExprPtr key = below(*dict, parse_expression());
    expect_operator(":");
    ExprPtr value = below(*dict, parse_expression());
    dict->items.emplace_back(std::move(key), std::move(value));
    if (!skip_operator(",")) break;
  }
  expect_operator("}");
  return dict;
}

ExprPtr Parser::parse_postfix(ExprPtr object, bool allows_filters) {
  bool has_filter = false;  // after one, only calls, filters and tests go on
  while (true) {
    if (sees_operator("(")) {
      object = parse_call(std::move(object));
    } else if (!has_filter && sees_operator(".")) {
      object = parse_attribute(std::move(object));
    } else if (!has_filter && sees_operator("[")) {
      object = parse_subscript(std::move(object));
    } else if (allows_filters && skip_operator("|")) {
      object = parse_filter(std::move(object));
      has_filter = true;
    } else if (allows_filters && sees_name("is")) {
      object = parse_test(std::move(object));
      has_filter = true;
    } else {
      return object;
    }
  }
}

ExprPtr Parser::parse_attribute(ExprPtr object) {
  next();
  const uint32_t offset = peek().offset;
  if (peek().type == TokenType::kInteger) {
    auto subscript = node<Subscript>(offset);
    subscript->object = below(*subscript, std::move(object));
    subscript->key = below(*subscript, parse_number());
    return subscript;
  }
  auto attribute = node<Attribute>(offset);
  attribute->object = below(*attribute, std::move(object));
  attribute->name = std::string(expect_any_name());
  return attribute;
}

ExprPtr Parser::parse_subscript(ExprPtr object) {
  const uint32_t offset = next().offset;
  const auto is_part_end = [&] { return sees_operator("]") || sees_operator(":"); };
  ExprPtr first = is_part_end() ? nullptr : parse_tuple();
  if (!sees_operator(":")) {
    if (!first) fail_here("an index");
    auto subscript = node<Subscript>(offset);
    subscript->object = below(*subscript, std::move(object));
    subscript->key = below(*subscript, std::move(first));
    expect_operator("]");
    return subscript;
  }
  auto slice = node<Slice>(offset);
  slice->object = below(*slice, std::move(object));
  if (first) slice->start = below(*slice, std::move(first));
  next();
  if (!is_part_end()) slice->stop = below(*slice, parse_expression());
  if (skip_operator(":") && !is_part_end()) slice->step = below(*slice, parse_expression());
  expect_operator("]");
  return slice;
}

ExprPtr Parser::parse_call(ExprPtr callee) {
  auto call = node<Call>(callee->offset);
  call->callee = below(*call, std::move(callee));
  call->arguments = parse_arguments(*call);
  return call;
}

Arguments Parser::parse_arguments(Node& parent) {
  Arguments arguments;
  expect_operator("(");
  while (!sees_operator(")")) {
    const uint32_t offset = peek().offset;
    const bool has_named = !arguments.named.empty() || arguments.more_named;
    if (sees_operator("*") && !arguments.more_positional && !arguments.more_named) {
      next();
      arguments.more_positional = below(parent, parse_expression());
    } else if (sees_operator("**") && !arguments.more_named) {
      next();
      arguments.more_named = below(parent, parse_expression());
    } else if (peek().type == TokenType::kName && sees_operator("=", 1) && !arguments.more_named) {
      std::string name(next().text);
      next();
      arguments.named.emplace_back(std::move(name), below(parent, parse_expression()));
    } else if (!has_named && !arguments.more_positional) {
      arguments.positional.push_back(below(parent, parse_expression()));
    } else {
      fail(offset, "positional arguments go before named ones");
    }
    if (!skip_operator(",")) break;
  }
  expect_operator(")");
  return arguments;
}

std::string Parser::dotted_name() {
  std::string name(expect_any_name());
  while (skip_operator(".")) {
    name += '.';
    name += expect_any_name();
  }
  return name;
}

ExprPtr Parser::parse_filter(ExprPtr input) {
  auto filter = node<FilterExpr>(peek().offset);
  filter->name = dotted_name();
  filter->filter = find_filter(filter->name);
  if (input) filter->input = below(*filter, std::move(input));
  if (sees_operator("(")) filter->arguments = parse_arguments(*filter);
  return filter;
}

ExprPtr Parser::parse_filter_chain() {
  ExprPtr filters;
  while (skip_operator("|")) filters = parse_filter(std::move(filters));
  return filters;
}

// "x is divisibleby 3": an argument without parentheses may follow.
ExprPtr Parser::parse_test(ExprPtr input) {
  next();
  const bool is_negated = skip_name("not");
  auto test = node<TestExpr>(peek().offset);
  test->is_negated = is_negated;
  test->name = dotted_name();
  test->test = find_test(test->name);
  test->input = below(*test, std::move(input));
  if (sees_operator("(")) {
    test->arguments = parse_arguments(*test);
    return test;
  }
  const TokenType type = peek().type;
  const bool is_value = type == TokenType::kString || type == TokenType::kInteger ||
                        type == TokenType::kFloat || sees_operator("[") || sees_operator("{");
  if (sees_name("is")) fail(peek().offset, "a test after a test: put the first into parentheses");
  const bool is_keyword = sees_name("else") || sees_name("or") || sees_name("and");
  if (is_value || (type == TokenType::kName && !is_keyword)) {
    const Nesting nesting(*this);
    test->arguments.positional.push_back(below(*test, parse_postfix(parse_primary(), false)));
  }
  return test;
}

}  // namespace minfer::jinja
