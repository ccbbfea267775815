#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/jinja/operations.h"

namespace minfer::jinja {
namespace {

std::partial_ordering compare_int_real(int64_t a, double b) {
  if (std::isnan(b)) return std::partial_ordering::unordered;
  if (b >= 0x1p63) return std::partial_ordering::less;
  if (b < -0x1p63) return std::partial_ordering::greater;
  const double whole = std::trunc(b);
  const auto truncated = static_cast<int64_t>(whole);
  if (a != truncated) return a <=> truncated;
  return 0.0 <=> b - whole;
}

// Python's own limit is the interpreter's stack.
void check_depth(Runtime& runtime, int depth) {
  if (depth > runtime.limits().depth) {
    runtime.fail(fmt::format("values nested more than {} deep", runtime.limits().depth));
  }
}

bool equal_nested(Runtime& runtime, const Value& a, const Value& b, int depth);

bool equal_lists(Runtime& runtime, const List& a, const List& b, int depth) {
  if (a.items.size() != b.items.size()) return false;
  for (size_t i = 0; i < a.items.size(); ++i) {
    if (!equal_nested(runtime, a.items[i], b.items[i], depth + 1)) return false;
  }
  return true;
}

bool equal_dicts(Runtime& runtime, Dict& a, Dict& b, int depth) {
  if (a.entries.size() != b.entries.size()) return false;
  for (const auto& [key, value] : a.entries) {
    const Value* other = b.find(key);
    if (!other || !equal_nested(runtime, value, *other, depth + 1)) return false;
  }
  return true;
}

bool same_object(const Value& a, const Value& b) {
  const bool is_pointer = !a.is_number() && !a.is_none();
  return is_pointer && a.kind() == b.kind() && a.identity() == b.identity();
}

bool equal_nested(Runtime& runtime, const Value& a, const Value& b, int depth) {
  check_depth(runtime, depth);
  runtime.step();
  if (a.is_number() && b.is_number()) return compare_numbers(a, b) == 0;
  if (a.kind() != b.kind()) return false;
  if (same_object(a, b)) return true;
  switch (a.kind()) {
    case Kind::kUndefined:
    case Kind::kNone:
      return true;
    case Kind::kText:
      runtime.scan(std::min(a.as_text().bytes.size(), b.as_text().bytes.size()));
      return a.as_text() == b.as_text();
    case Kind::kList:
    case Kind::kTuple:
      return equal_lists(runtime, a.as_list(), b.as_list(), depth);
    case Kind::kDict:
      return equal_dicts(runtime, a.as_dict(), b.as_dict(), depth);
    default:
      return false;
  }
}

bool is_ordered(CompareOp op, std::partial_ordering order) {
  switch (op) {
    case CompareOp::kLess:
      return order < 0;
    case CompareOp::kLessEqual:
      return order <= 0;
    case CompareOp::kGreater:
      return order > 0;
    default:
      return order >= 0;
  }
}

std::string_view symbol(CompareOp op) {
  switch (op) {
    case CompareOp::kLess:
      return "<";
    case CompareOp::kLessEqual:
      return "<=";
    case CompareOp::kGreater:
      return ">";
    default:
      return ">=";
  }
}

// `op` is one of the four that order. A NaN, which has no order, makes each of them false.
bool ordered_nested(Runtime& runtime, CompareOp op, const Value& a, const Value& b, int depth) {
  check_depth(runtime, depth);
  runtime.step();
  if (a.is_number() && b.is_number()) return is_ordered(op, compare_numbers(a, b));
  if (a.is_text() && b.is_text()) {
    runtime.scan(std::min(a.as_text().bytes.size(), b.as_text().bytes.size()));
    return is_ordered(op, a.as_text().bytes <=> b.as_text().bytes);  // in UTF-8 as by code points
  }
  if (a.is_undefined()) fail_undefined(runtime, a);
  if (b.is_undefined()) fail_undefined(runtime, b);
  if (!a.is_sequence() || a.kind() != b.kind()) {
    runtime.fail(fmt::format("'{}' not supported between instances of '{}' and '{}'", symbol(op),
                             type_name(a), type_name(b)));
  }
  const auto &left = a.as_list().items, &right = b.as_list().items;
  for (size_t i = 0; i < std::min(left.size(), right.size()); ++i) {
    if (!equal_nested(runtime, left[i], right[i], depth + 1)) {
      return ordered_nested(runtime, op, left[i], right[i], depth + 1);
    }
  }
  return is_ordered(op, left.size() <=> right.size());
}

void require_hashable_nested(Runtime& runtime, const Value& key, int depth) {
  check_depth(runtime, depth);
  runtime.step();
  if (key.is(Kind::kList) || key.is(Kind::kDict)) {
    runtime.fail(fmt::format("unhashable type: '{}'", type_name(key)));
  }
  if (key.is_text()) runtime.scan(key.as_text().bytes.size());
  if (!key.is(Kind::kTuple)) return;
  for (const Value& item : key.as_list().items) require_hashable_nested(runtime, item, depth + 1);
}

}  // namespace

std::partial_ordering compare_numbers(const Value& a, const Value& b) {
  if (a.is_integral() && b.is_integral()) return a.as_int() <=> b.as_int();
  if (a.is_integral()) return compare_int_real(a.as_int(), b.as_real());
  if (b.is_integral()) return 0 <=> compare_int_real(b.as_int(), a.as_real());
  return a.as_real() <=> b.as_real();
}

bool equal(Runtime& runtime, const Value& a, const Value& b) {
  return equal_nested(runtime, a, b, 0);
}

bool less(Runtime& runtime, const Value& a, const Value& b) {
  return ordered_nested(runtime, CompareOp::kLess, a, b, 0);
}

bool contains(Runtime& runtime, const Value& container, const Value& item) {
  if (container.is_text()) {
    if (!item.is_text()) {
      runtime.fail(fmt::format("'in <string>' requires string as left operand, not {}", type_name(item)));
    }
    runtime.scan(container.as_text().bytes.size());
    return find_bytes(container.as_text().bytes, item.as_text().bytes) != std::string_view::npos;
  }
  if (container.is(Kind::kDict)) return find_key(runtime, container.as_dict(), item) != nullptr;
  if (container.is_sequence()) {
    const List& list = container.as_list();
    return std::any_of(list.items.begin(), list.items.end(),
                       [&](const Value& each) { return equal(runtime, each, item); });
  }
  if (container.is_undefined()) return false;
  runtime.fail(fmt::format("argument of type '{}' is not iterable", type_name(container)));
}

bool compare(Runtime& runtime, CompareOp op, const Value& a, const Value& b) {
  switch (op) {
    case CompareOp::kEqual:
      return equal(runtime, a, b);
    case CompareOp::kNotEqual:
      return !equal(runtime, a, b);
    case CompareOp::kIn:
      return contains(runtime, b, a);
    case CompareOp::kNotIn:
      return !contains(runtime, b, a);
    default:
      return ordered_nested(runtime, op, a, b, 0);
  }
}

void require_hashable(Runtime& runtime, const Value& key) {
  require_hashable_nested(runtime, key, 0);
}

Value* find_key(Runtime& runtime, Dict& dict, const Value& key) {
  require_hashable(runtime, key);
  return dict.find(key);
}

}  // namespace minfer::jinja
