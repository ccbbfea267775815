// Private to the interpreter: the parsed template. Immutable, so that renderings may share it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/jinja/callable.h"
#include "core/jinja/operations.h"

namespace minfer::jinja {

using NameId = uint32_t;  // index in Program::names

struct Node {
  uint32_t offset = 0;  // of the token that errors point at
  uint16_t depth = 1;   // of the tree below; the parser keeps it within kMaxNesting
  virtual ~Node() = default;
};

enum class ExprKind : uint8_t {
  kLiteral,
  kName,
  kSequence,
  kDict,
  kAttribute,
  kSubscript,
  kSlice,
  kCall,
  kFilter,
  kTest,
  kNegate,
  kPlus,
  kNot,
  kArithmetic,
  kConcat,
  kCompare,
  kAnd,
  kOr,
  kConditional,
};

struct Expr : Node {
  explicit Expr(ExprKind k) : kind(k) {}
  const ExprKind kind;
};
using ExprPtr = std::unique_ptr<Expr>;

struct Literal : Expr {
  Literal() : Expr(ExprKind::kLiteral) {}
  Value value;
  std::string bytes;  // of a text, which `text` and `value` point to
  Text text;
};

struct Name : Expr {
  Name() : Expr(ExprKind::kName) {}
  NameId name = 0;
};

struct Sequence : Expr {
  Sequence() : Expr(ExprKind::kSequence) {}
  bool is_tuple = false;
  std::vector<ExprPtr> items;
};

struct DictExpr : Expr {
  DictExpr() : Expr(ExprKind::kDict) {}
  std::vector<std::pair<ExprPtr, ExprPtr>> items;
};

struct Attribute : Expr {
  Attribute() : Expr(ExprKind::kAttribute) {}
  ExprPtr object;
  std::string name;
};

struct Subscript : Expr {
  Subscript() : Expr(ExprKind::kSubscript) {}
  ExprPtr object, key;
};

struct Slice : Expr {
  Slice() : Expr(ExprKind::kSlice) {}
  ExprPtr object, start, stop, step;  // the last three may be absent
};

struct Arguments {
  std::vector<ExprPtr> positional;
  std::vector<std::pair<std::string, ExprPtr>> named;
  ExprPtr more_positional, more_named;  // *list, **dict; may be absent
};

struct Call : Expr {
  Call() : Expr(ExprKind::kCall) {}
  ExprPtr callee;
  Arguments arguments;
};

struct FilterExpr : Expr {
  FilterExpr() : Expr(ExprKind::kFilter) {}
  ExprPtr input;  // absent at the begin of a filter block's chain: the block's text
  std::string name;
  Filter filter = nullptr;  // none of that name: an error once it is reached
  Arguments arguments;
};

struct TestExpr : Expr {
  TestExpr() : Expr(ExprKind::kTest) {}
  ExprPtr input;
  std::string name;
  Test test = nullptr;
  bool is_negated = false;
  Arguments arguments;
};

struct Unary : Expr {
  explicit Unary(ExprKind k) : Expr(k) {}  // kNegate, kPlus, kNot
  ExprPtr operand;
};

// Of one level of precedence, from the left.
struct Arithmetic : Expr {
  Arithmetic() : Expr(ExprKind::kArithmetic) {}
  struct Step {
    ArithmeticOp op;
    uint32_t offset;
    ExprPtr operand;
  };
  ExprPtr first;
  std::vector<Step> steps;
};

// kConcat: the texts of all joined; kAnd, kOr.
struct Chain : Expr {
  explicit Chain(ExprKind k) : Expr(k) {}
  std::vector<ExprPtr> operands;
};

// a < b < c: a < b and b < c.
struct Compare : Expr {
  Compare() : Expr(ExprKind::kCompare) {}
  struct Step {
    CompareOp op;
    uint32_t offset;
    ExprPtr operand;
  };
  ExprPtr first;
  std::vector<Step> steps;
};

struct Conditional : Expr {
  Conditional() : Expr(ExprKind::kConditional) {}
  ExprPtr condition, then, otherwise;  // `otherwise` may be absent: undefined
};

// What a set, a for or a with assigns to.
struct Target {
  enum class Type : uint8_t { kName, kAttribute, kTuple };
  Type type = Type::kName;
  uint32_t offset = 0;
  NameId name = 0;
  std::string attribute;  // of the namespace `name`
  std::vector<Target> items;
};

enum class StatementKind : uint8_t {
  kData,
  kOutput,
  kIf,
  kFor,
  kSet,
  kSetBlock,
  kMacro,
  kCallBlock,
  kFilterBlock,
  kWith,
  kDo,
  kBreak,
  kContinue,
};

struct Statement : Node {
  explicit Statement(StatementKind k) : kind(k) {}
  const StatementKind kind;
};
using Body = std::vector<std::unique_ptr<Statement>>;

struct DataStatement : Statement {
  DataStatement() : Statement(StatementKind::kData) {}
  std::string_view bytes;  // in Program::source
};

// kOutput, kDo; kBreak and kContinue without an expression.
struct SimpleStatement : Statement {
  using Statement::Statement;
  ExprPtr expression;
};

struct IfStatement : Statement {
  IfStatement() : Statement(StatementKind::kIf) {}
  struct Branch {
    ExprPtr condition;
    Body body;
  };
  std::vector<Branch> branches;
  Body otherwise;
};

struct ForStatement : Statement {
  ForStatement() : Statement(StatementKind::kFor) {}
  Target target;
  ExprPtr iterable, condition;  // the condition may be absent
  bool is_recursive = false;
  Body body, otherwise;
};

struct SetStatement : Statement {
  SetStatement() : Statement(StatementKind::kSet) {}
  Target target;
  ExprPtr value;
};

struct SetBlock : Statement {
  SetBlock() : Statement(StatementKind::kSetBlock) {}
  Target target;
  ExprPtr filters;  // a chain of FilterExpr; may be absent
  Body body;
};

struct Parameter {
  NameId name = 0;
  ExprPtr fallback;  // may be absent
};

struct Macro {
  std::string name;
  std::vector<Parameter> parameters;
  bool takes_varargs = false, takes_kwargs = false, takes_caller = false;  // whether the body speaks of them
  Body body;
};

struct MacroStatement : Statement {
  MacroStatement() : Statement(StatementKind::kMacro) {}
  NameId name = 0;
  Macro macro;
};

struct CallBlock : Statement {
  CallBlock() : Statement(StatementKind::kCallBlock) {}
  ExprPtr call;  // a Call
  Macro caller;
};

struct FilterBlock : Statement {
  FilterBlock() : Statement(StatementKind::kFilterBlock) {}
  ExprPtr filters;
  Body body;
};

// A scope of its own: with, generation.
struct WithStatement : Statement {
  WithStatement() : Statement(StatementKind::kWith) {}
  std::vector<std::pair<Target, ExprPtr>> assignments;
  Body body;
};

struct Program {
  std::string source;  // newlines normalized
  std::vector<std::string> names;
  NameId loop = 0, caller = 0, varargs = 0, kwargs = 0;  // names that statements define
  Body body;
};

// Nesting of expressions and statements in the source: what any stack holds.
inline constexpr int kMaxNesting = 100;

std::unique_ptr<const Program> parse(std::string_view source);  // throws Error

}  // namespace minfer::jinja
