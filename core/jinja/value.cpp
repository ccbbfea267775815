#include "core/jinja/value.h"

#include <algorithm>
#include <cmath>

#include "core/jinja/operations.h"

namespace minfer::jinja {
namespace {

int key_class(const Value& value) {
  if (value.is_undefined()) return 0;
  if (value.is_none()) return 1;
  if (value.is_number()) return 2;
  if (value.is_text()) return 3;
  if (value.is(Kind::kTuple)) return 4;
  return 5;  // by identity
}

bool number_key_less(const Value& a, const Value& b) {
  const bool a_is_nan = std::isnan(a.as_real()), b_is_nan = std::isnan(b.as_real());
  if (a_is_nan || b_is_nan) return a_is_nan && !b_is_nan;
  return compare_numbers(a, b) < 0;
}

}  // namespace

Value Value::boolean(bool value) {
  Value made;
  made.kind_ = Kind::kBool;
  made.integer_ = value;
  return made;
}

Value Value::integer(int64_t value) {
  Value made;
  made.kind_ = Kind::kInt;
  made.integer_ = value;
  return made;
}

Value Value::real(double value) {
  Value made;
  made.kind_ = Kind::kFloat;
  made.real_ = value;
  return made;
}

bool KeyLess::operator()(const Value& a, const Value& b) const {
  const int a_class = key_class(a), b_class = key_class(b);
  if (a_class != b_class) return a_class < b_class;
  switch (a_class) {
    case 2:
      return number_key_less(a, b);
    case 3:
      return a.as_text().bytes < b.as_text().bytes;
    case 4: {
      const auto &left = a.as_list().items, &right = b.as_list().items;
      return std::lexicographical_compare(left.begin(), left.end(), right.begin(), right.end(), *this);
    }
    case 5:
      return std::less<>()(a.identity(), b.identity());
    default:
      return false;
  }
}

size_t Dict::position(const Value& key) {
  const KeyLess less;
  if (entries.size() <= kSmall) {
    const auto is_key = [&](const auto& entry) { return !less(entry.first, key) && !less(key, entry.first); };
    return static_cast<size_t>(std::find_if(entries.begin(), entries.end(), is_key) - entries.begin());
  }
  if (index_.empty()) {
    for (size_t i = 0; i < entries.size(); ++i) index_.emplace(entries[i].first, i);
  }
  const auto found = index_.find(key);
  return found == index_.end() ? entries.size() : found->second;
}

Value* Dict::find(const Value& key) {
  const size_t at = position(key);
  return at < entries.size() ? &entries[at].second : nullptr;
}

Value* Dict::find(std::string_view key) {
  const Text text{key, {}};
  return find(Value::text(&text));
}

void Dict::set(const Value& key, const Value& value) {
  const size_t at = position(key);
  if (at < entries.size()) {
    entries[at].second = value;
    return;
  }
  if (!index_.empty()) index_.emplace(key, at);
  entries.emplace_back(key, value);
}

bool Dict::erase(const Value& key) {
  const size_t at = position(key);
  if (at == entries.size()) return false;
  entries.erase(entries.begin() + static_cast<std::ptrdiff_t>(at));
  index_.clear();  // every later position has moved
  return true;
}

void Dict::clear() {
  entries.clear();
  index_.clear();
}

}  // namespace minfer::jinja
