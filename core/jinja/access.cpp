// What is inside a value: items, attributes, slices, its length and its truth.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/jinja/callable.h"
#include "core/jinja/operations.h"

namespace minfer::jinja {
namespace {

// The way Jinja2 names an object in "... has no attribute": by its class.
std::string object_name(const Value& object) {
  if (object.is_none()) return "None";
  if (object.is(Kind::kNamespace)) return "jinja2.utils.Namespace object";
  if (object.is(Kind::kLoop)) return "jinja2.runtime.LoopContext object";
  return fmt::format("{} object", type_name(object));
}

Value no_attribute(Runtime& runtime, const Value& object, std::string_view name) {
  return runtime.undefined(
      fmt::format("'{}' has no attribute {}", object_name(object), quoted(name.substr(0, 100))));
}

Value no_element(Runtime& runtime, const Value& object, const Value& key) {
  return runtime.undefined(
      fmt::format("{} has no element {}", object_name(object), repr_bytes(runtime, key)));
}

Value loop_neighbour(Runtime& runtime, const Loop& loop, bool is_next) {
  if (is_next ? loop.index + 1 < loop.items.size() : loop.index > 0) {
    return loop.items[is_next ? loop.index + 1 : loop.index - 1];
  }
  return runtime.undefined(is_next ? "there is no next item" : "there is no previous item");
}

std::optional<Value> loop_attribute(Runtime& runtime, const Loop& loop, std::string_view name) {
  const auto count = [](size_t n) { return Value::integer(static_cast<int64_t>(n)); };
  if (name == "index") return count(loop.index + 1);
  if (name == "index0") return count(loop.index);
  if (name == "revindex") return count(loop.items.size() - loop.index);
  if (name == "revindex0") return count(loop.items.size() - loop.index - 1);
  if (name == "first") return Value::boolean(loop.index == 0);
  if (name == "last") return Value::boolean(loop.index + 1 == loop.items.size());
  if (name == "length") return count(loop.items.size());
  if (name == "depth") return Value::integer(loop.depth + 1);
  if (name == "depth0") return Value::integer(loop.depth);
  if (name == "previtem") return loop_neighbour(runtime, loop, false);
  if (name == "nextitem") return loop_neighbour(runtime, loop, true);
  return std::nullopt;
}

std::optional<Value> python_attribute(Runtime& runtime, const Value& object, std::string_view name) {
  if (const Method method = find_method(object.kind(), name)) {
    auto* bound = runtime.make<Callable>();
    bound->name = name;
    bound->method = method;
    bound->self = object;
    return Value::callable(bound);
  }
  if (object.is(Kind::kLoop)) return loop_attribute(runtime, object.as_loop(), name);
  if (object.is(Kind::kNamespace)) {
    if (const Value* found = object.as_dict().find(name)) return *found;
  }
  if (object.is(Kind::kTuple)) {
    const auto& fields = object.as_list().fields;
    const auto field = std::find(fields.begin(), fields.end(), name);
    if (field != fields.end()) return object.as_list().items[static_cast<size_t>(field - fields.begin())];
  }
  if (object.is(Kind::kCallable) && name == "name") {
    return Value::text(runtime.view(object.as_callable().name));
  }
  return std::nullopt;
}

// Nothing past either end.
std::optional<size_t> wrap_index(int64_t index, size_t size) {
  const auto n = static_cast<int64_t>(size);
  if (index < 0) index += n;
  if (index < 0 || index >= n) return std::nullopt;
  return static_cast<size_t>(index);
}

std::optional<Value> indexed(Runtime& runtime, const Value& object, int64_t index) {
  if (object.is_sequence()) {
    const auto& items = object.as_list().items;
    const auto at = wrap_index(index, items.size());
    if (at) return items[*at];
  } else if (object.is_text()) {
    const Text& text = object.as_text();
    const size_t n_chars = count_chars(text);
    if (n_chars != text.bytes.size()) runtime.scan(text.bytes.size());
    if (const auto at = wrap_index(index, n_chars)) {
      const size_t begin = byte_of_char(text, *at);
      return Value::text(slice_bytes(runtime, text, begin, next_char(text.bytes, begin)));
    }
  }
  return std::nullopt;
}

struct SliceBounds {
  int64_t start, step;
  size_t n_items;
};

std::optional<int64_t> slice_part(Runtime& runtime, const Value& part) {
  if (part.is_none()) return std::nullopt;
  if (part.is_undefined()) fail_undefined(runtime, part);
  if (!part.is_integral()) runtime.fail("slice indices must be integers or None");
  return part.as_int();
}

// As Python's slice.indices().
SliceBounds slice_bounds(Runtime& runtime, const Value& start, const Value& stop, const Value& step,
                         size_t size) {
  const auto n = static_cast<int64_t>(size);
  // No sequence is longer than this: a wider stride picks the same items, and sums cannot overflow.
  const int64_t widest = int64_t{1} << 62;
  const int64_t stride = std::clamp(slice_part(runtime, step).value_or(1), -widest, widest);
  if (stride == 0) runtime.fail("slice step cannot be zero");
  const int64_t low = stride < 0 ? -1 : 0, high = stride < 0 ? n - 1 : n;
  const auto bound = [&](const Value& part, int64_t otherwise) {
    const auto given = slice_part(runtime, part);
    if (!given) return otherwise;
    return std::clamp(*given < 0 ? *given + n : *given, low, high);
  };
  const int64_t first = bound(start, stride < 0 ? high : low);
  const int64_t last = bound(stop, stride < 0 ? low : high);
  const int64_t span = stride < 0 ? first - last : last - first;
  const int64_t width = stride < 0 ? -stride : stride;
  return {first, stride, span <= 0 ? 0 : static_cast<size_t>((span - 1) / width + 1)};
}

Value slice_text(Runtime& runtime, const Text& text, const SliceBounds& bounds) {
  runtime.scan(text.bytes.size());
  const auto first = static_cast<size_t>(std::max<int64_t>(bounds.start, 0));
  if (bounds.step == 1 || bounds.n_items == 0) {
    const size_t begin = byte_of_char(text, bounds.n_items == 0 ? 0 : first);
    const size_t end = bounds.n_items == 0 ? begin : byte_of_char(text, first + bounds.n_items);
    return Value::text(slice_bytes(runtime, text, begin, end));
  }
  std::vector<Value> chars = iterate(runtime, Value::text(&text));
  TextBuilder picked(runtime);
  for (size_t i = 0; i < bounds.n_items; ++i) {
    picked.add(chars[static_cast<size_t>(bounds.start + static_cast<int64_t>(i) * bounds.step)].as_text());
  }
  return Value::text(picked.finish());
}

std::vector<Value> characters(Runtime& runtime, const Text& text) {
  std::vector<Value> chars;
  runtime.step(count_chars(text));
  for (size_t at = 0; at < text.bytes.size();) {
    const size_t end = next_char(text.bytes, at);
    chars.push_back(Value::text(slice_bytes(runtime, text, at, end)));
    at = end;
  }
  return chars;
}

}  // namespace

std::string_view type_name(const Value& value) {
  static constexpr std::array<std::string_view, 12> kNames = {
      "Undefined", "NoneType", "bool", "int",       "float",       "str",
      "list",      "tuple",    "dict", "Namespace", "LoopContext", "function"};
  return kNames[static_cast<size_t>(value.kind())];
}

bool truthy(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
    case Kind::kNone:
      return false;
    case Kind::kBool:
    case Kind::kInt:
      return value.as_int() != 0;
    case Kind::kFloat:
      return value.as_real() != 0;
    default:
      return length(value).value_or(1) != 0;
  }
}

void fail_undefined(Runtime& runtime, const Value& value) {
  runtime.fail(value.as_missing().message);
}

std::optional<int64_t> length(const Value& value) {
  const auto count = [](size_t n) { return static_cast<int64_t>(n); };
  switch (value.kind()) {
    case Kind::kUndefined:
      return 0;
    case Kind::kText:
      return count(count_chars(value.as_text()));
    case Kind::kList:
    case Kind::kTuple:
      return count(value.as_list().items.size());
    case Kind::kDict:
      return count(value.as_dict().entries.size());
    case Kind::kLoop:
      return count(value.as_loop().items.size());
    default:
      return std::nullopt;
  }
}

std::vector<Value> iterate(Runtime& runtime, const Value& value) {
  if (value.is_undefined()) return {};
  if (value.is_text()) return characters(runtime, value.as_text());
  std::vector<Value> items;
  if (value.is_sequence()) {
    items = value.as_list().items;
  } else if (value.is(Kind::kDict)) {
    for (const auto& entry : value.as_dict().entries) items.push_back(entry.first);
  } else {
    runtime.fail(fmt::format("'{}' object is not iterable", type_name(value)));
  }
  runtime.step(items.size());
  return items;
}

Value get_attribute(Runtime& runtime, const Value& object, std::string_view name) {
  if (object.is_undefined()) fail_undefined(runtime, object);
  if (const auto found = python_attribute(runtime, object, name)) return *found;
  if (object.is(Kind::kDict)) {
    if (const Value* found = object.as_dict().find(name)) return *found;
  }
  return no_attribute(runtime, object, name);
}

Value get_item(Runtime& runtime, const Value& object, const Value& key) {
  if (object.is_undefined()) fail_undefined(runtime, object);
  if (object.is(Kind::kDict)) {
    if (key.is(Kind::kList) || key.is(Kind::kDict)) return no_element(runtime, object, key);
    if (const Value* found = find_key(runtime, object.as_dict(), key)) return *found;
  } else if (key.is_integral()) {
    if (const auto found = indexed(runtime, object, key.as_int())) return *found;
  }
  if (!key.is_text()) return no_element(runtime, object, key);
  // As in Jinja2: what is no item may be an attribute, so that d['items'] is a method where the key is not.
  const std::string_view name = key.as_text().bytes;
  if (const auto found = python_attribute(runtime, object, name)) return *found;
  return no_attribute(runtime, object, name);
}

Value get_slice(Runtime& runtime, const Value& object, const Value& start, const Value& stop,
                const Value& step) {
  if (object.is_undefined()) fail_undefined(runtime, object);
  if (object.is_text()) {
    const Text& text = object.as_text();
    return slice_text(runtime, text, slice_bounds(runtime, start, stop, step, count_chars(text)));
  }
  if (!object.is_sequence()) {
    runtime.fail(fmt::format("'{}' object cannot be sliced", type_name(object)));
  }
  const auto& items = object.as_list().items;
  const SliceBounds bounds = slice_bounds(runtime, start, stop, step, items.size());
  runtime.step(bounds.n_items);
  std::vector<Value> picked(bounds.n_items);
  for (size_t i = 0; i < picked.size(); ++i) {
    picked[i] = items[static_cast<size_t>(bounds.start + static_cast<int64_t>(i) * bounds.step)];
  }
  List* list = runtime.new_list(std::move(picked));
  return object.is(Kind::kTuple) ? Value::tuple(list) : Value::list(list);
}

Value get_path(Runtime& runtime, const Value& object, const Value& path, const Value& fallback) {
  const auto or_fallback = [&](const Value& found) {
    return found.is_undefined() && !fallback.is_none() ? fallback : found;
  };
  if (!path.is_text()) return or_fallback(get_item(runtime, object, path));
  Value at = object;
  const Text& whole = path.as_text();
  std::string_view rest = whole.bytes;
  runtime.scan(rest.size());
  while (true) {
    runtime.step();
    const size_t dot = std::min(rest.find('.'), rest.size());
    const std::string_view part = rest.substr(0, dot);
    const bool is_index = !part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos;
    const auto index = is_index ? parse_integer(part, 10) : std::nullopt;
    const Value key = index ? Value::integer(*index) : Value::text(slice_view(runtime, whole, part));
    at = or_fallback(get_item(runtime, at, key));
    if (dot == rest.size()) return at;
    rest.remove_prefix(dot + 1);
  }
}

void update_dict(Runtime& runtime, Dict& dict, const Value& more) {
  if (more.is(Kind::kDict) || more.is(Kind::kNamespace)) {
    const auto entries = more.as_dict().entries;  // which may be those of `dict`
    runtime.step(entries.size());
    for (const auto& [key, value] : entries) runtime.set(dict, key, value);
    return;
  }
  for (const Value& pair : iterate(runtime, more)) {
    const std::vector<Value> parts = iterate(runtime, pair);
    if (parts.size() != 2) runtime.fail(fmt::format("a mapping needs pairs, not {} values", parts.size()));
    require_hashable(runtime, parts[0]);
    runtime.set(dict, parts[0], parts[1]);
  }
}

}  // namespace minfer::jinja
