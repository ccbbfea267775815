// Filters that make texts.
#include <fmt/format.h>

#include <algorithm>

#include "core/jinja/bound_args.h"
#include "core/jinja/char_class.h"
#include "core/jinja/filters.h"
#include "core/jinja/format.h"
#include "core/jinja/text_operations.h"
#include "core/jinja/to_json.h"
#include "core/jinja/unicode_case.h"

namespace minfer::jinja {
namespace {

using Rt = Runtime;  // in every signature below

Value as_text_value(Rt& rt, const Value& input) {
  return Value::text(to_text(rt, input));
}

template <const Text* (*function)(Runtime&, const Text&)>
Value mapped(Rt& rt, const Value& input, const Args& args) {
  const BoundArgs bound(rt, "this filter", args, {});
  return Value::text(function(rt, *to_text(rt, input)));
}

Value string_filter(Rt& rt, const Value& input, const Args& args) {
  const BoundArgs bound(rt, "this filter", args, {});
  return as_text_value(rt, input);
}

Value trim(Rt& rt, const Value& input, const Args& args) {
  const BoundArgs bound(rt, "trim", args, {"chars"});
  const bool has_chars = bound.has(0) && !bound[0].is_none();
  return Value::text(strip(rt, *to_text(rt, input), has_chars ? &bound.text(0) : nullptr, true, true));
}

// Jinja's own: words begin after blanks, dashes and opening brackets only.
Value title_filter(Rt& rt, const Value& input, const Args& args) {
  const BoundArgs bound(rt, "title", args, {});
  const Text& text = *to_text(rt, input);
  rt.scan(text.bytes.size() * 4);
  TextBuilder out(rt);
  bool begins_word = true;
  for_each_char(text, [&](std::string_view character, bool is_input) {
    const bool separates = is_space(code_point(character)) ||
                           std::string_view("-({[<").find(character) != std::string_view::npos;
    out.add(begins_word ? upper_of(character) : lower_of(character), is_input);
    begins_word = separates;
  });
  return Value::text(out.finish());
}

Value replace_filter(Rt& rt, const Value& input, const Args& args) {
  const BoundArgs bound(rt, "replace", args, {"old", "new", "count"}, 2);
  return Value::text(replace(rt, *to_text(rt, input), *to_text(rt, bound[0]), *to_text(rt, bound[1]),
                             bound.integer_or(2, -1)));
}

Value join_filter(Rt& rt, const Value& input, const Args& args) {
  const BoundArgs bound(rt, "join", args, {"d", "attribute"});
  std::vector<Value> items = iterate(rt, input);
  if (bound.has(1) && !bound[1].is_none()) {
    for (Value& item : items) item = get_path(rt, item, bound[1]);
  }
  const Text none{"", {}};
  return Value::text(join(rt, items, bound.has(0) ? *to_text(rt, bound[0]) : none));
}

Value indent(Rt& rt, const Value& input, const Args& args) {
  const BoundArgs bound(rt, "indent", args, {"width", "first", "blank"});
  const Text& text = *to_text(rt, input);
  TextBuilder indention(rt);
  if (bound.has(0) && bound[0].is_text()) {
    indention.add(bound[0].as_text());
  } else {
    const int64_t width = std::max<int64_t>(bound.integer_or(0, 4), 0);
    indention.fill(" ", static_cast<size_t>(width));
  }
  const Text& margin = *indention.finish();
  // A line more where the text ends with a line's end, or is empty.
  std::vector<Value> lines = split_lines(rt, text, false);
  const std::vector<Value> with_ends = split_lines(rt, text, true);
  const auto ends_line = [&] {
    return lines.back().as_text().bytes.size() < with_ends.back().as_text().bytes.size();
  };
  if (lines.empty() || ends_line()) lines.push_back(Value::text(rt.view("")));
  TextBuilder out(rt);
  for (size_t i = 0; i < lines.size(); ++i) {
    const Text& line = lines[i].as_text();
    const bool indents = i == 0 ? bound.truth_or(1, false) : !line.bytes.empty() || bound.truth_or(2, false);
    if (i > 0) out.add("\n");
    if (indents) out.add(margin);
    out.add(line);
  }
  return Value::text(out.finish());
}

Value truncate(Rt& rt, const Value& input, const Args& args) {
  const BoundArgs bound(rt, "truncate", args, {"length", "killwords", "end", "leeway"});
  const Text& text = *to_text(rt, input);
  const Text dots{"...", {}};
  const Text& end = bound.has(2) ? bound.text(2) : dots;
  const int64_t length = bound.integer_or(0, 255), leeway = bound.integer_or(3, 5);
  rt.scan(text.bytes.size());
  const auto n_end = static_cast<int64_t>(count_chars(end));
  if (length < n_end)
    rt.fail(fmt::format("truncate: expected a length of at least {}, got {}", n_end, length));
  if (leeway < 0) rt.fail(fmt::format("truncate: expected a leeway of at least 0, got {}", leeway));
  const auto n_chars = static_cast<int64_t>(count_chars(text));
  if (n_chars <= length || n_chars - length <= leeway) return Value::text(&text);
  const Text* kept = slice_bytes(rt, text, 0, byte_of_char(text, static_cast<size_t>(length - n_end)));
  const size_t blank = kept->bytes.rfind(' ');
  if (!bound.truth_or(1, false) && blank != std::string_view::npos) kept = slice_bytes(rt, *kept, 0, blank);
  TextBuilder out(rt);
  out.add(*kept);
  out.add(end);
  return Value::text(out.finish());
}

Value center_filter(Rt& rt, const Value& input, const Args& args) {
  const BoundArgs bound(rt, "center", args, {"width"});
  return Value::text(center(rt, *to_text(rt, input), bound.integer_or(0, 80), " "));
}

Value wordcount(Rt& rt, const Value& input, const Args& args) {
  const BoundArgs bound(rt, "wordcount", args, {});
  const Text& text = *to_text(rt, input);
  rt.scan(text.bytes.size() * 8);
  return Value::integer(static_cast<int64_t>(count_words(text.bytes)));
}

Value format_filter(Rt& rt, const Value& input, const Args& args) {
  if (!args.positional.empty() && !args.named.empty()) {
    rt.fail("format: positional and keyword arguments at the same time");
  }
  Value values = Value::tuple(rt.new_list({args.positional.begin(), args.positional.end()}));
  if (!args.named.empty()) {
    Dict* dict = rt.new_dict();
    for (const NamedValue& argument : args.named) rt.set(*dict, argument.name, argument.value);
    values = Value::dict(dict);
  }
  return percent_format(rt, *to_text(rt, input), values);
}

Value tojson(Rt& rt, const Value& input, const Args& args) {
  const BoundArgs bound(rt, "tojson", args, {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonStyle style;
  style.ensures_ascii = bound.truth_or(0, false);
  style.sorts_keys = bound.truth_or(3, false);
  TextBuilder blanks(rt);
  if (bound.has(1) && !bound[1].is_none()) {
    style.is_indented = true;
    style.item_separator = ",";
    if (bound[1].is_text()) {
      blanks.add(bound[1].as_text());
    } else {
      blanks.fill(" ", static_cast<size_t>(std::max<int64_t>(bound.integer(1), 0)));
    }
  }
  style.indent = blanks.finish()->bytes;
  if (bound.has(2) && !bound[2].is_none()) {
    const std::vector<Value> separators = iterate(rt, bound[2]);
    if (separators.size() != 2 || !separators[0].is_text() || !separators[1].is_text()) {
      rt.fail("tojson: separators must be two strings");
    }
    style.item_separator = separators[0].as_text().bytes;
    style.key_separator = separators[1].as_text().bytes;
  }
  return Value::text(to_json(rt, input, style));
}

}  // namespace

// There is no autoescaping in a chat template: `safe` changes nothing.
std::span<const NamedFilter> text_filters() {
  static constexpr NamedFilter kFilters[] = {
      {"capitalize", mapped<capitalize>},
      {"center", center_filter},
      {"e", mapped<escape_html>},
      {"escape", mapped<escape_html>},
      {"forceescape", mapped<escape_html>},
      {"format", format_filter},
      {"indent", indent},
      {"join", join_filter},
      {"lower", mapped<lower>},
      {"replace", replace_filter},
      {"safe", string_filter},
      {"string", string_filter},
      {"title", title_filter},
      {"tojson", tojson},
      {"trim", trim},
      {"truncate", truncate},
      {"upper", mapped<upper>},
      {"wordcount", wordcount},
  };
  return kFilters;
}

}  // namespace minfer::jinja
