// Filters of whole sequences.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/jinja/bound_args.h"
#include "core/jinja/filters.h"
#include "core/jinja/sequence_operations.h"
#include "core/jinja/unicode_case.h"

namespace minfer::jinja {
namespace {

using Rt = Runtime;  // in every signature below

Value new_list(Rt& rt, std::vector<Value> items) {
  return Value::list(rt.new_list(std::move(items)));
}

// What a filter sorts or compares an item by: an attribute of it, texts without their case.
KeyOf key_of(Rt& rt, const Value& attribute, bool is_case_sensitive) {
  return [&rt, attribute, is_case_sensitive](const Value& item) {
    const Value key = attribute.is_none() ? item : get_path(rt, item, attribute);
    return key.is_text() && !is_case_sensitive ? Value::text(lower(rt, key.as_text())) : key;
  };
}

Value length_filter(Rt& rt, const Value& input, const Args& args) {
  const BoundArgs bound(rt, "length", args, {});
  const auto n = length(input);
  if (!n) rt.fail(fmt::format("object of type '{}' has no len()", type_name(input)));
  return Value::integer(*n);
}

Value first(Rt& rt, const Value& input, const Args& args) {
  const BoundArgs bound(rt, "first", args, {});
  const std::vector<Value> items = iterate(rt, input);
  return items.empty() ? rt.undefined("No first item, sequence was empty.") : items.front();
}

Value last(Rt& rt, const Value& input, const Args& args) {
  const BoundArgs bound(rt, "last", args, {});
  const std::vector<Value> items = iterate(rt, input);
  return items.empty() ? rt.undefined("No last item, sequence was empty.") : items.back();
}

Value list_filter(Rt& rt, const Value& input, const Args& args) {
  const BoundArgs bound(rt, "list", args, {});
  return new_list(rt, iterate(rt, input));
}

Value items_filter(Rt& rt, const Value& input, const Args& args) {
  const BoundArgs bound(rt, "items", args, {});
  if (input.is_undefined()) return new_list(rt, {});
  if (!input.is(Kind::kDict)) rt.fail("Can only get item pairs from a mapping.");
  return new_list(rt, dict_items(rt, input.as_dict()));
}

Value reverse(Rt& rt, const Value& input, const Args& args) {
  const BoundArgs bound(rt, "reverse", args, {});
  if (input.is_text()) return get_slice(rt, input, {}, {}, Value::integer(-1));
  std::vector<Value> items = iterate(rt, input);
  std::reverse(items.begin(), items.end());
  return new_list(rt, std::move(items));
}

Value sort_filter(Rt& rt, const Value& input, const Args& args) {
  const BoundArgs bound(rt, "sort", args, {"reverse", "case_sensitive", "attribute"});
  std::vector<Value> items = iterate(rt, input);
  const bool is_case_sensitive = bound.truth_or(1, false);
  // "a,b": by a, then by b.
  const auto by = [&](const Value& item) {
    if (!bound[2].is_text() || bound[2].as_text().bytes.find(',') == std::string_view::npos) {
      return key_of(rt, bound[2], is_case_sensitive)(item);
    }
    List* keys = rt.new_list();
    const Text& attributes = bound[2].as_text();
    for (size_t at = 0; at <= attributes.bytes.size();) {
      const size_t comma = std::min(attributes.bytes.find(',', at), attributes.bytes.size());
      const Value attribute = Value::text(slice_bytes(rt, attributes, at, comma));
      rt.append(*keys, key_of(rt, attribute, is_case_sensitive)(item));
      at = comma + 1;
    }
    return Value::list(keys);
  };
  sort_by(rt, items, by, bound.truth_or(0, false));
  return new_list(rt, std::move(items));
}

Value dictsort(Rt& rt, const Value& input, const Args& args) {
  const BoundArgs bound(rt, "dictsort", args, {"case_sensitive", "by", "reverse"});
  if (!input.is(Kind::kDict)) rt.fail(fmt::format("dictsort needs a mapping, not {}", type_name(input)));
  const std::string_view by = bound.text_or(1, "key");
  if (by != "key" && by != "value") rt.fail("You can only sort by either \"key\" or \"value\"");
  std::vector<Value> items = dict_items(rt, input.as_dict());
  const Value position = Value::integer(by == "key" ? 0 : 1);
  sort_by(rt, items, key_of(rt, position, bound.truth_or(0, false)), bound.truth_or(2, false));
  return new_list(rt, std::move(items));
}

Value unique(Rt& rt, const Value& input, const Args& args) {
  const BoundArgs bound(rt, "unique", args, {"case_sensitive", "attribute"});
  const KeyOf key = key_of(rt, bound[1], bound.truth_or(0, false));
  std::set<Value, KeyLess> seen;
  std::vector<Value> kept;
  for (const Value& item : iterate(rt, input)) {
    const Value its_key = key(item);
    require_hashable(rt, its_key);
    if (seen.insert(its_key).second) kept.push_back(item);
  }
  return new_list(rt, std::move(kept));
}

template <bool is_max>
Value extreme(Rt& rt, const Value& input, const Args& args) {
  const BoundArgs bound(rt, is_max ? "max" : "min", args, {"case_sensitive", "attribute"});
  const std::vector<Value> items = iterate(rt, input);
  if (items.empty()) return rt.undefined("No aggregated item, sequence was empty.");
  const KeyOf key = key_of(rt, bound[1], bound.truth_or(0, false));
  Value best = items[0], best_key = key(best);
  for (size_t i = 1; i < items.size(); ++i) {
    const Value its_key = key(items[i]);
    const bool is_better = is_max ? less(rt, best_key, its_key) : less(rt, its_key, best_key);
    if (!is_better) continue;
    best = items[i];
    best_key = its_key;
  }
  return best;
}

Value sum(Rt& rt, const Value& input, const Args& args) {
  const BoundArgs bound(rt, "sum", args, {"attribute", "start"});
  Value total = bound.has(1) ? bound[1] : Value::integer(0);
  if (total.is_text()) rt.fail("sum() can't sum strings: use join");
  for (const Value& item : iterate(rt, input)) {
    const bool has_attribute = bound.has(0) && !bound[0].is_none();
    total = arithmetic(rt, ArithmeticOp::kAdd, total, has_attribute ? get_path(rt, item, bound[0]) : item);
  }
  return total;
}

// Rows of `linecount` items, the last one filled up.
Value batch(Rt& rt, const Value& input, const Args& args) {
  const BoundArgs bound(rt, "batch", args, {"linecount", "fill_with"}, 1);
  const int64_t n_row = bound.integer(0);
  List* rows = rt.new_list();
  List* row = nullptr;
  for (const Value& item : iterate(rt, input)) {
    if (!row || static_cast<int64_t>(row->items.size()) == n_row) {
      row = rt.new_list();
      rt.append(*rows, Value::list(row));
    }
    rt.append(*row, item);
  }
  while (row && !bound[1].is_none() && static_cast<int64_t>(row->items.size()) < n_row) {
    rt.step();
    rt.append(*row, bound[1]);
  }
  return Value::list(rows);
}

// `slices` columns, the first ones an item longer.
Value slice_filter(Rt& rt, const Value& input, const Args& args) {
  const BoundArgs bound(rt, "slice", args, {"slices", "fill_with"}, 1);
  const int64_t n_slices = bound.integer(0);
  if (n_slices < 1) rt.fail(fmt::format("slice: slices must be at least 1, not {}", n_slices));
  const std::vector<Value> items = iterate(rt, input);
  const auto n = static_cast<int64_t>(items.size());
  const int64_t n_each = n / n_slices, n_longer = n % n_slices;
  List* columns = rt.new_list();
  auto at = items.begin();
  for (int64_t i = 0; i < n_slices; ++i) {
    rt.step();
    const auto end = at + static_cast<std::ptrdiff_t>(n_each + (i < n_longer));
    List* column = rt.new_list({at, end});
    if (!bound[1].is_none() && i >= n_longer && n_longer > 0) rt.append(*column, bound[1]);
    rt.append(*columns, Value::list(column));
    at = end;
  }
  return Value::list(columns);
}

List* new_group(Rt& rt, const Value& grouper) {
  static constexpr std::string_view kFields[] = {"grouper", "list"};
  List* group = rt.new_list({grouper, Value::list(rt.new_list())});
  group->fields = kFields;
  return group;
}

// (grouper, list) tuples, in the order of the groupers.
Value groupby(Rt& rt, const Value& input, const Args& args) {
  const BoundArgs bound(rt, "groupby", args, {"attribute", "default", "case_sensitive"}, 1);
  const auto attribute_of = [&](const Value& item) { return get_path(rt, item, bound[0], bound[1]); };
  const KeyOf plain_key = key_of(rt, {}, bound.truth_or(2, false));
  const auto key = [&](const Value& item) { return plain_key(attribute_of(item)); };
  std::vector<Value> items = iterate(rt, input);
  sort_by(rt, items, key, false);
  List* groups = rt.new_list();
  Value last_key;
  for (const Value& item : items) {
    const Value its_key = key(item);
    if (groups->items.empty() || !equal(rt, its_key, last_key)) {
      rt.append(*groups, Value::tuple(new_group(rt, attribute_of(item))));
      last_key = its_key;
    }
    rt.append(groups->items.back().as_list().items[1].as_list(), item);
  }
  return Value::list(groups);
}

}  // namespace

std::span<const NamedFilter> sequence_filters() {
  static constexpr NamedFilter kFilters[] = {
      {"batch", batch},        {"count", length_filter},  {"dictsort", dictsort},
      {"first", first},        {"groupby", groupby},      {"items", items_filter},
      {"last", last},          {"length", length_filter}, {"list", list_filter},
      {"max", extreme<true>},  {"min", extreme<false>},   {"reverse", reverse},
      {"slice", slice_filter}, {"sort", sort_filter},     {"sum", sum},
      {"unique", unique},
  };
  return kFilters;
}

}  // namespace minfer::jinja
