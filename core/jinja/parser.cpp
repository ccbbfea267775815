#include "core/jinja/parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace minfer::jinja {
namespace {

std::string described(const Token& token) {
  switch (token.type) {
    case TokenType::kEnd:
      return "the end of the template";
    case TokenType::kTagEnd:
      return "the end of the tag";
    case TokenType::kOutputEnd:
      return "the end of the output";
    default:
      return fmt::format("'{}'", std::string(token.text.substr(0, 40)));
  }
}

}  // namespace

Parser::Parser(std::string_view source) {
  // Parsing takes no steps: the size alone bounds its time and memory. Offsets are 32 bits wide, too.
  constexpr size_t kMaxSource = size_t{1} << 20;
  if (source.size() > kMaxSource) {
    throw Error(fmt::format("a template of more than {} bytes ({})", kMaxSource, source.size()), 1, 1);
  }
  program_->source = normalize_newlines(source);
  tokens_ = tokenize(program_->source);
  program_->loop = intern("loop");
  program_->caller = intern("caller");
  program_->varargs = intern("varargs");
  program_->kwargs = intern("kwargs");
}

std::unique_ptr<const Program> Parser::run() {
  SimpleStatement root(StatementKind::kDo);  // its depth alone is of use
  program_->body = parse_body(root, "", {});
  return std::move(program_);
}

const Token& Parser::next() {
  const Token& token = peek();
  at_ = std::min(at_ + 1, tokens_.size() - 1);
  return token;
}

bool Parser::sees_operator(std::string_view op, size_t ahead) const {
  return peek(ahead).type == TokenType::kOperator && peek(ahead).text == op;
}

bool Parser::sees_name(std::string_view name, size_t ahead) const {
  return peek(ahead).type == TokenType::kName && peek(ahead).text == name;
}

bool Parser::skip_operator(std::string_view op) {
  const bool seen = sees_operator(op);
  if (seen) next();
  return seen;
}

bool Parser::skip_name(std::string_view name) {
  const bool seen = sees_name(name);
  if (seen) next();
  return seen;
}

void Parser::expect_operator(std::string_view op) {
  if (!skip_operator(op)) fail_here(fmt::format("'{}'", op));
}

void Parser::expect_name(std::string_view name) {
  if (!skip_name(name)) fail_here(fmt::format("'{}'", name));
}

std::string_view Parser::expect_any_name() {
  if (peek().type != TokenType::kName) fail_here("a name");
  return next().text;
}

void Parser::expect_tag_end() {
  if (peek().type != TokenType::kTagEnd) fail_here("the end of the tag");
  next();
}

NameId Parser::intern(std::string_view name) {
  const auto found = name_ids_.find(name);
  if (found != name_ids_.end()) return found->second;
  const auto id = static_cast<NameId>(program_->names.size());
  program_->names.emplace_back(name);
  name_ids_.emplace(name, id);  // `name` is in the source, or static
  return id;
}

void Parser::fail(uint32_t offset, const std::string& message) const {
  throw error_at(program_->source, offset, message);
}

void Parser::fail_here(std::string_view expected) const {
  fail(peek().offset, fmt::format("expected {}, found {}", expected, described(peek())));
}

void Parser::fail_nesting() const {
  fail(peek().offset, fmt::format("nested more than {} deep", kMaxNesting));
}

void Parser::deepen(Node& parent, const Node& child) {
  if (child.depth >= kMaxNesting) fail(child.offset, fmt::format("nested more than {} deep", kMaxNesting));
  parent.depth = std::max(parent.depth, static_cast<uint16_t>(child.depth + 1));
}

std::unique_ptr<const Program> parse(std::string_view source) {
  return Parser(source).run();
}

}  // namespace minfer::jinja
