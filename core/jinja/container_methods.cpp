// The methods of list, tuple, dict and loop.
#include <fmt/format.h>

#include <algorithm>

#include "core/jinja/bound_args.h"
#include "core/jinja/callable.h"
#include "core/jinja/methods.h"
#include "core/jinja/sequence_operations.h"

namespace minfer::jinja {
namespace {

using Rt = Runtime;  // in every signature below

// Where a new item would go, or an old one is: as list indices do, but clamped.
size_t clamped(int64_t index, size_t size) {
  const auto n = static_cast<int64_t>(size);
  return static_cast<size_t>(std::clamp<int64_t>(index < 0 ? index + n : index, 0, n));
}

Value list_append(Rt& rt, const Value& self, const Args& args) {
  const BoundArgs bound(rt, "append()", args, {"item"}, 1);
  rt.append(self.as_list(), bound[0]);
  return {};
}

Value list_extend(Rt& rt, const Value& self, const Args& args) {
  const BoundArgs bound(rt, "extend()", args, {"items"}, 1);
  for (const Value& item : iterate(rt, bound[0])) rt.append(self.as_list(), item);
  return {};
}

Value list_insert(Rt& rt, const Value& self, const Args& args) {
  const BoundArgs bound(rt, "insert()", args, {"index", "item"}, 2);
  auto& items = self.as_list().items;
  const size_t at = clamped(bound.integer(0), items.size());
  rt.step(items.size() - at);
  rt.append(self.as_list(), bound[1]);
  std::rotate(items.begin() + static_cast<std::ptrdiff_t>(at), items.end() - 1, items.end());
  return {};
}

Value list_pop(Rt& rt, const Value& self, const Args& args) {
  const BoundArgs bound(rt, "pop()", args, {"index"});
  auto& items = self.as_list().items;
  const auto n = static_cast<int64_t>(items.size());
  const int64_t given = bound.integer_or(0, -1);
  const int64_t index = given < 0 ? given + n : given;
  if (index < 0 || index >= n) rt.fail(n == 0 ? "pop from empty list" : "pop index out of range");
  const auto at = items.begin() + static_cast<std::ptrdiff_t>(index);
  const Value item = *at;
  rt.step(static_cast<uint64_t>(n - index));
  items.erase(at);
  return item;
}

size_t position_of(Rt& rt, const Value& self, const Value& item) {
  const auto& items = self.as_list().items;
  const auto found =
      std::find_if(items.begin(), items.end(), [&](const Value& each) { return equal(rt, each, item); });
  return static_cast<size_t>(found - items.begin());
}

Value list_index(Rt& rt, const Value& self, const Args& args) {
  const BoundArgs bound(rt, "index()", args, {"item"}, 1);
  const size_t at = position_of(rt, self, bound[0]);
  if (at == self.as_list().items.size()) rt.fail("the item is not in the list");
  return Value::integer(static_cast<int64_t>(at));
}

Value list_remove(Rt& rt, const Value& self, const Args& args) {
  const BoundArgs bound(rt, "remove()", args, {"item"}, 1);
  auto& items = self.as_list().items;
  const size_t at = position_of(rt, self, bound[0]);
  if (at == items.size()) rt.fail("the item is not in the list");
  rt.step(items.size() - at);
  items.erase(items.begin() + static_cast<std::ptrdiff_t>(at));
  return {};
}

Value list_count(Rt& rt, const Value& self, const Args& args) {
  const BoundArgs bound(rt, "count()", args, {"item"}, 1);
  const auto& items = self.as_list().items;
  return Value::integer(std::count_if(items.begin(), items.end(),
                                      [&](const Value& each) { return equal(rt, each, bound[0]); }));
}

Value list_clear(Rt& rt, const Value& self, const Args& args) {
  const BoundArgs bound(rt, "clear()", args, {});
  self.as_list().items.clear();
  return {};
}

Value list_copy(Rt& rt, const Value& self, const Args& args) {
  const BoundArgs bound(rt, "copy()", args, {});
  return Value::list(rt.new_list(iterate(rt, self)));
}

Value list_reverse(Rt& rt, const Value& self, const Args& args) {
  const BoundArgs bound(rt, "reverse()", args, {});
  rt.step(self.as_list().items.size());
  std::reverse(self.as_list().items.begin(), self.as_list().items.end());
  return {};
}

Value list_sort(Rt& rt, const Value& self, const Args& args) {
  const BoundArgs bound(rt, "sort()", args, {"reverse"});
  sort_by(
      rt, self.as_list().items, [](const Value& item) { return item; }, bound.truth_or(0, false));
  return {};
}

Value dict_get(Rt& rt, const Value& self, const Args& args) {
  const BoundArgs bound(rt, "get()", args, {"key", "default"}, 1);
  const Value* found = find_key(rt, self.as_dict(), bound[0]);
  return found ? *found : bound[1];
}

Value dict_items_method(Rt& rt, const Value& self, const Args& args) {
  const BoundArgs bound(rt, "items()", args, {});
  return Value::list(rt.new_list(dict_items(rt, self.as_dict())));
}

Value dict_keys(Rt& rt, const Value& self, const Args& args) {
  const BoundArgs bound(rt, "keys()", args, {});
  return Value::list(rt.new_list(iterate(rt, self)));
}

Value dict_values(Rt& rt, const Value& self, const Args& args) {
  const BoundArgs bound(rt, "values()", args, {});
  List* values = rt.new_list();
  rt.step(self.as_dict().entries.size());
  for (const auto& entry : self.as_dict().entries) rt.append(*values, entry.second);
  return Value::list(values);
}

Value dict_pop(Rt& rt, const Value& self, const Args& args) {
  const BoundArgs bound(rt, "pop()", args, {"key", "default"}, 1);
  const Value* found = find_key(rt, self.as_dict(), bound[0]);
  if (!found && !bound.has(1)) rt.fail(fmt::format("no key {}", repr_bytes(rt, bound[0])));
  const Value value = found ? *found : bound[1];
  rt.step(self.as_dict().entries.size());
  self.as_dict().erase(bound[0]);
  return value;
}

Value dict_popitem(Rt& rt, const Value& self, const Args& args) {
  const BoundArgs bound(rt, "popitem()", args, {});
  Dict& dict = self.as_dict();
  if (dict.entries.empty()) rt.fail("popitem from an empty dict");
  const auto [key, value] = dict.entries.back();
  rt.step(dict.entries.size());
  dict.erase(key);
  return rt.tuple({key, value});
}

Value dict_setdefault(Rt& rt, const Value& self, const Args& args) {
  const BoundArgs bound(rt, "setdefault()", args, {"key", "default"}, 1);
  if (const Value* found = find_key(rt, self.as_dict(), bound[0])) return *found;
  rt.set(self.as_dict(), bound[0], bound[1]);
  return bound[1];
}

Value dict_update(Rt& rt, const Value& self, const Args& args) {
  if (args.positional.size() > 1) rt.fail("update() takes at most one positional argument");
  if (!args.positional.empty()) update_dict(rt, self.as_dict(), args.positional[0]);
  for (const NamedValue& argument : args.named) rt.set(self.as_dict(), argument.name, argument.value);
  return {};
}

Value dict_clear(Rt& rt, const Value& self, const Args& args) {
  const BoundArgs bound(rt, "clear()", args, {});
  self.as_dict().clear();
  return {};
}

Value dict_copy(Rt& rt, const Value& self, const Args& args) {
  const BoundArgs bound(rt, "copy()", args, {});
  Dict* copy = rt.new_dict();
  update_dict(rt, *copy, self);
  return Value::dict(copy);
}

Value loop_cycle(Rt& rt, const Value& self, const Args& args) {
  if (args.positional.empty() || !args.named.empty()) rt.fail("no items for cycling given");
  return args.positional[self.as_loop().index % args.positional.size()];
}

// Whether its arguments are others than at its last call.
Value loop_changed(Rt& rt, const Value& self, const Args& args) {
  Loop& loop = self.as_loop();
  const auto same = [&](const Value& a, const Value& b) { return equal(rt, a, b); };
  const bool is_same =
      loop.has_changed && std::equal(args.positional.begin(), args.positional.end(),
                                     loop.last_changed.begin(), loop.last_changed.end(), same);
  rt.take_bytes(args.positional.size() * sizeof(Value));
  loop.last_changed.assign(args.positional.begin(), args.positional.end());
  loop.has_changed = true;
  return Value::boolean(!is_same);
}

}  // namespace

std::span<const NamedMethod> list_methods() {
  static constexpr NamedMethod kMethods[] = {
      {"append", list_append}, {"clear", list_clear},     {"copy", list_copy},     {"count", list_count},
      {"extend", list_extend}, {"index", list_index},     {"insert", list_insert}, {"pop", list_pop},
      {"remove", list_remove}, {"reverse", list_reverse}, {"sort", list_sort},
  };
  return kMethods;
}

std::span<const NamedMethod> tuple_methods() {
  static constexpr NamedMethod kMethods[] = {{"count", list_count}, {"index", list_index}};
  return kMethods;
}

std::span<const NamedMethod> dict_methods() {
  static constexpr NamedMethod kMethods[] = {
      {"clear", dict_clear},     {"copy", dict_copy},
      {"get", dict_get},         {"items", dict_items_method},
      {"keys", dict_keys},       {"pop", dict_pop},
      {"popitem", dict_popitem}, {"setdefault", dict_setdefault},
      {"update", dict_update},   {"values", dict_values},
  };
  return kMethods;
}

std::span<const NamedMethod> loop_methods() {
  static constexpr NamedMethod kMethods[] = {{"changed", loop_changed}, {"cycle", loop_cycle}};
  return kMethods;
}

Method find_method(Kind kind, std::string_view name) {
  std::span<const NamedMethod> methods;
  if (kind == Kind::kText) methods = string_methods();
  if (kind == Kind::kList) methods = list_methods();
  if (kind == Kind::kTuple) methods = tuple_methods();
  if (kind == Kind::kDict) methods = dict_methods();
  if (kind == Kind::kLoop) methods = loop_methods();
  const auto found =
      std::lower_bound(methods.begin(), methods.end(), name,
                       [](const NamedMethod& each, std::string_view n) { return each.name < n; });
  return found != methods.end() && found->name == name ? found->method : nullptr;
}

}  // namespace minfer::jinja
