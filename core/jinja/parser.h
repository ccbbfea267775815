// Private to the interpreter: tokens to the tree, after Jinja2's grammar and its precedences.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/jinja/ast.h"
#include "core/jinja/lexer.h"

namespace minfer::jinja {

class Parser {
 public:
  explicit Parser(std::string_view source);
  std::unique_ptr<const Program> run();

 private:
  // One level of recursion; an error past kMaxNesting.
  class Nesting {
   public:
    explicit Nesting(Parser& parser) : parser_(parser) {
      if (++parser_.nesting_ > kMaxNesting) parser_.fail_nesting();
    }
    ~Nesting() { --parser_.nesting_; }
    Nesting(const Nesting&) = delete;

   private:
    Parser& parser_;
  };

  // parser.cpp
  const Token& peek(size_t ahead = 0) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)]; }
  const Token& next();
  bool sees_operator(std::string_view op, size_t ahead = 0) const;
  bool sees_name(std::string_view name, size_t ahead = 0) const;
  bool skip_operator(std::string_view op);
  bool skip_name(std::string_view name);
  void expect_operator(std::string_view op);
  void expect_name(std::string_view name);
  std::string_view expect_any_name();
  void expect_tag_end();
  NameId intern(std::string_view name);
  [[noreturn]] void fail(uint32_t offset, const std::string& message) const;
  [[noreturn]] void fail_here(std::string_view expected) const;
  [[noreturn]] void fail_nesting() const;
  // `child` below `parent`, whose depth grows with it.
  template <typename T>
  std::unique_ptr<T> below(Node& parent, std::unique_ptr<T> child) {
    deepen(parent, *child);
    return child;
  }
  void deepen(Node& parent, const Node& child);
  template <typename T, typename... Args>
  std::unique_ptr<T> node(uint32_t offset, Args... args) {
    auto made = std::make_unique<T>(args...);
    made->offset = offset;
    return made;
  }

  // parse_statements.cpp
  using Ends = std::initializer_list<std::string_view>;
  Body parse_body(Node& parent, std::string_view opener,
                  Ends ends);  // up to the name of the tag that ends it
  std::unique_ptr<Statement> parse_tag();
  std::unique_ptr<Statement> parse_output();
  std::unique_ptr<Statement> parse_if(uint32_t offset);
  std::unique_ptr<Statement> parse_for(uint32_t offset);
  std::unique_ptr<Statement> parse_loop_control(uint32_t offset, bool is_break);
  std::unique_ptr<Statement> parse_set(uint32_t offset);
  std::unique_ptr<Statement> parse_macro(uint32_t offset);
  std::unique_ptr<Statement> parse_call_block(uint32_t offset);
  std::unique_ptr<Statement> parse_filter_block(uint32_t offset);
  std::unique_ptr<Statement> parse_with(uint32_t offset);
  std::unique_ptr<Statement> parse_generation(uint32_t offset);
  void parse_macro_body(Node& parent, Macro& macro, std::string_view opener, std::string_view end);
  std::vector<Parameter> parse_parameters(Node& parent);
  Target parse_target(bool allows_namespace);
  Target parse_one_target(bool allows_namespace);
  NameId assignable_name();

  // parse_expressions.cpp
  ExprPtr parse_expression(bool allows_condition = true);
  ExprPtr parse_tuple(bool allows_condition = true, bool is_in_parentheses = false);
  ExprPtr parse_chain(ExprKind kind);
  ExprPtr parse_not();
  ExprPtr parse_compare();
  ExprPtr parse_arithmetic(int level);
  ExprPtr parse_concat();
  ExprPtr parse_unary(bool allows_filters = true);
  ExprPtr parse_primary();
  ExprPtr parse_name();
  ExprPtr parse_string();
  ExprPtr parse_number();
  ExprPtr parse_list();
  ExprPtr parse_dict();
  ExprPtr parse_postfix(ExprPtr object, bool allows_filters);
  ExprPtr parse_attribute(ExprPtr object);
  ExprPtr parse_subscript(ExprPtr object);
  ExprPtr parse_call(ExprPtr callee);
  ExprPtr parse_filter(ExprPtr input);  // nullptr: of a block
  ExprPtr parse_filter_chain();         // after a filter tag or a set block's target; nullptr: none
  ExprPtr parse_test(ExprPtr input);
  Arguments parse_arguments(Node& parent);
  bool is_tuple_end() const;
  std::string dotted_name();

  std::unique_ptr<Program> program_ = std::make_unique<Program>();
  std::vector<Token> tokens_;
  size_t at_ = 0;
  int nesting_ = 0;
  int n_loops_ = 0;         // around the present statement, within its macro
  Macro* macro_ = nullptr;  // around it
  std::unordered_map<std::string_view, NameId> name_ids_;
};

}  // namespace minfer::jinja
