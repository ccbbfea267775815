// The methods of str.
#include <fmt/format.h>

#include <algorithm>

#include "core/jinja/bound_args.h"
#include "core/jinja/char_class.h"
#include "core/jinja/format.h"
#include "core/jinja/methods.h"
#include "core/jinja/text_operations.h"
#include "core/jinja/unicode_case.h"

namespace minfer::jinja {
namespace {

using Rt = Runtime;  // in every signature below

template <const Text* (*function)(Runtime&, const Text&)>
Value mapped(Rt& rt, const Value& self, const Args& args) {
  const BoundArgs bound(rt, "this method of str", args, {});
  return Value::text(function(rt, self.as_text()));
}

template <bool at_left, bool at_right>
Value strip_method(Rt& rt, const Value& self, const Args& args) {
  const BoundArgs bound(rt, "strip()", args, {"chars"});
  const bool has_chars = bound.has(0) && !bound[0].is_none();
  return Value::text(strip(rt, self.as_text(), has_chars ? &bound.text(0) : nullptr, at_left, at_right));
}

template <bool from_right>
Value split_method(Rt& rt, const Value& self, const Args& args) {
  const BoundArgs bound(rt, "split()", args, {"sep", "maxsplit"});
  const bool has_separator = bound.has(0) && !bound[0].is_none();
  const int64_t n_most = bound.integer_or(1, -1);
  const size_t most = n_most < 0 ? SIZE_MAX : static_cast<size_t>(n_most);
  const Text& text = self.as_text();
  if (!has_separator) return Value::list(rt.new_list(split_spaces(rt, text, most, from_right)));
  if (bound.text(0).bytes.empty()) rt.fail("empty separator");
  return Value::list(rt.new_list(split(rt, text, bound.text(0).bytes, most, from_right)));
}

template <bool from_right>
Value partition(Rt& rt, const Value& self, const Args& args) {
  const BoundArgs bound(rt, "partition()", args, {"sep"}, 1);
  if (bound.text(0).bytes.empty()) rt.fail("empty separator");
  std::vector<Value> parts = split(rt, self.as_text(), bound.text(0).bytes, 1, from_right);
  const Value empty = Value::text(rt.view(""));
  if (parts.size() == 1) return from_right ? rt.tuple({empty, empty, self}) : rt.tuple({self, empty, empty});
  return rt.tuple({parts[0], bound[0], parts[1]});
}

Value splitlines(Rt& rt, const Value& self, const Args& args) {
  const BoundArgs bound(rt, "splitlines()", args, {"keepends"});
  return Value::list(rt.new_list(split_lines(rt, self.as_text(), bound.truth_or(0, false))));
}

Value replace_method(Rt& rt, const Value& self, const Args& args) {
  const BoundArgs bound(rt, "replace()", args, {"old", "new", "count"}, 2);
  return Value::text(replace(rt, self.as_text(), bound.text(0), bound.text(1), bound.integer_or(2, -1)));
}

// The slice that searches work in: its first character and its bytes. Nothing where it begins past the end.
struct Stretch {
  size_t first_char;
  const Text* text;
};

std::optional<Stretch> stretch(Rt& rt, const Text& text, const BoundArgs& bound) {
  rt.scan(text.bytes.size());
  const auto n_chars = static_cast<int64_t>(count_chars(text));
  const auto position = [&](size_t i, int64_t fallback) {
    const int64_t given = bound.integer_or(i, fallback);
    return given < 0 ? std::max<int64_t>(given + n_chars, 0) : given;
  };
  const int64_t first = position(1, 0), last = std::min(position(2, n_chars), n_chars);
  if (first > n_chars || first > last) return std::nullopt;
  const size_t begin = byte_of_char(text, static_cast<size_t>(first));
  const size_t end = byte_of_char(text, static_cast<size_t>(last));
  return Stretch{static_cast<size_t>(first), slice_bytes(rt, text, begin, end)};
}

template <bool from_right, bool must_find>
Value find(Rt& rt, const Value& self, const Args& args) {
  const BoundArgs bound(rt, "find()", args, {"sub", "start", "end"}, 1);
  const std::string_view needle = bound.text(0).bytes;
  rt.scan(self.as_text().bytes.size());
  if (const auto where = stretch(rt, self.as_text(), bound)) {
    const std::string_view bytes = where->text->bytes;
    size_t found = find_bytes(bytes, needle);
    if (from_right && needle.empty()) found = bytes.size();
    if (from_right && !needle.empty()) {
      const std::vector<size_t> last = rfind_all(bytes, needle, 1);
      found = last.empty() ? std::string_view::npos : last[0];
    }
    if (found != std::string_view::npos) {
      return Value::integer(static_cast<int64_t>(where->first_char + count_chars(bytes.substr(0, found))));
    }
  }
  if (must_find) rt.fail("substring not found");
  return Value::integer(-1);
}

Value count(Rt& rt, const Value& self, const Args& args) {
  const BoundArgs bound(rt, "count()", args, {"sub", "start", "end"}, 1);
  const std::string_view needle = bound.text(0).bytes;
  rt.scan(self.as_text().bytes.size());
  const auto where = stretch(rt, self.as_text(), bound);
  if (!where) return Value::integer(0);
  const std::string_view bytes = where->text->bytes;
  if (needle.empty()) return Value::integer(static_cast<int64_t>(count_chars(bytes)) + 1);
  int64_t n_found = 0;
  for (size_t at = find_bytes(bytes, needle); at != std::string_view::npos;
       at = find_bytes(bytes, needle, at + needle.size())) {
    rt.step();
    ++n_found;
  }
  return Value::integer(n_found);
}

template <bool at_end>
Value has_affix(Rt& rt, const Value& self, const Args& args) {
  const BoundArgs bound(rt, at_end ? "endswith()" : "startswith()", args, {"affix", "start", "end"}, 1);
  const auto where = stretch(rt, self.as_text(), bound);
  const auto matches = [&](const Value& affix) {
    if (!affix.is_text())
      rt.fail(fmt::format("an affix must be a string or a tuple of them, not {}", type_name(affix)));
    const std::string_view bytes = affix.as_text().bytes;
    rt.scan(bytes.size());
    return where && (at_end ? where->text->bytes.ends_with(bytes) : where->text->bytes.starts_with(bytes));
  };
  if (!bound[0].is(Kind::kTuple)) return Value::boolean(matches(bound[0]));
  const auto& affixes = bound[0].as_list().items;
  return Value::boolean(std::any_of(affixes.begin(), affixes.end(), matches));
}

template <bool at_end>
Value remove_affix(Rt& rt, const Value& self, const Args& args) {
  const BoundArgs bound(rt, "removeprefix()", args, {"affix"}, 1);
  const Text& text = self.as_text();
  const std::string_view affix = bound.text(0).bytes;
  const size_t n = text.bytes.size();
  rt.scan(std::min(n, affix.size()));
  if (!(at_end ? text.bytes.ends_with(affix) : text.bytes.starts_with(affix))) return self;
  return Value::text(slice_bytes(rt, text, at_end ? 0 : affix.size(), at_end ? n - affix.size() : n));
}

Value join_method(Rt& rt, const Value& self, const Args& args) {
  const BoundArgs bound(rt, "join()", args, {"iterable"}, 1);
  const std::vector<Value> items = iterate(rt, bound[0]);
  for (size_t i = 0; i < items.size(); ++i) {
    if (!items[i].is_text()) {
      rt.fail(fmt::format("sequence item {}: expected str instance, {} found", i, type_name(items[i])));
    }
  }
  return Value::text(join(rt, items, self.as_text()));
}

template <char align>
Value justify(Rt& rt, const Value& self, const Args& args) {
  const BoundArgs bound(rt, "ljust()", args, {"width", "fillchar"}, 1);
  const std::string_view fill = bound.text_or(1, " ");
  if (count_chars(fill) != 1) rt.fail("the fill character must be exactly one character long");
  TextBuilder out(rt);
  pad(rt, self.as_text(), fill, align, bound.integer(0), out);
  return Value::text(out.finish());
}

// Python puts the odd blank of str.center elsewhere than format does.
Value center_method(Rt& rt, const Value& self, const Args& args) {
  const BoundArgs bound(rt, "center()", args, {"width", "fillchar"}, 1);
  const std::string_view fill = bound.text_or(1, " ");
  if (count_chars(fill) != 1) rt.fail("the fill character must be exactly one character long");
  return Value::text(center(rt, self.as_text(), bound.integer(0), fill));
}

Value zfill(Rt& rt, const Value& self, const Args& args) {
  const BoundArgs bound(rt, "zfill()", args, {"width"}, 1);
  const Text& text = self.as_text();
  const int64_t width = std::max<int64_t>(bound.integer(0), 0);
  rt.check_text_size(static_cast<size_t>(width));
  const size_t n_sign = text.bytes.starts_with('-') || text.bytes.starts_with('+') ? 1 : 0;
  const size_t n_chars = count_chars(text);
  TextBuilder out(rt);
  out.add(*slice_bytes(rt, text, 0, n_sign));
  if (static_cast<size_t>(width) > n_chars) out.fill("0", static_cast<size_t>(width) - n_chars);
  out.add(*slice_bytes(rt, text, n_sign, text.bytes.size()));
  return Value::text(out.finish());
}

Value expandtabs(Rt& rt, const Value& self, const Args& args) {
  const BoundArgs bound(rt, "expandtabs()", args, {"tabsize"});
  const auto size = static_cast<size_t>(std::clamp<int64_t>(bound.integer_or(0, 8), 0, INT32_MAX));
  rt.scan(self.as_text().bytes.size());
  TextBuilder out(rt);
  size_t column = 0;
  for_each_char(self.as_text(), [&](std::string_view character, bool is_input) {
    if (character == "\t") {
      const size_t n_blanks = size == 0 ? 0 : size - column % size;
      out.fill(" ", n_blanks);
      column += n_blanks;
      return;
    }
    column = character == "\n" || character == "\r" ? 0 : column + 1;
    out.add(character, is_input);
  });
  return Value::text(out.finish());
}

Value format_method(Rt& rt, const Value& self, const Args& args) {
  return brace_format(rt, self.as_text(), args);
}

template <CharClass char_class>
Value is_wholly(Rt& rt, const Value& self, const Args& args) {
  const BoundArgs bound(rt, "this method of str", args, {});
  rt.scan(self.as_text().bytes.size() * 8);
  return Value::boolean(consists_of(self.as_text().bytes, char_class));
}

template <bool (*function)(std::string_view)>
Value has_case(Rt& rt, const Value& self, const Args& args) {
  const BoundArgs bound(rt, "this method of str", args, {});
  rt.scan(self.as_text().bytes.size() * 4);
  return Value::boolean(function(self.as_text().bytes));
}

}  // namespace

std::span<const NamedMethod> string_methods() {
  static constexpr NamedMethod kMethods[] = {
      {"capitalize", mapped<capitalize>},
      {"casefold", mapped<lower>},
      {"center", center_method},
      {"count", count},
      {"endswith", has_affix<true>},
      {"expandtabs", expandtabs},
      {"find", find<false, false>},
      {"format", format_method},
      {"index", find<false, true>},
      {"isalnum", is_wholly<CharClass::kAlphanumeric>},
      {"isalpha", is_wholly<CharClass::kAlphabetic>},
      {"isascii", has_case<is_ascii>},
      {"isdecimal", is_wholly<CharClass::kDecimal>},
      {"isdigit", is_wholly<CharClass::kDigit>},
      {"isidentifier", is_wholly<CharClass::kIdentifier>},
      {"islower", has_case<is_lower_text>},
      {"isnumeric", is_wholly<CharClass::kNumeric>},
      {"isspace", has_case<is_space_text>},
      {"istitle", has_case<is_title_text>},
      {"isupper", has_case<is_upper_text>},
      {"join", join_method},
      {"ljust", justify<'<'>},
      {"lower", mapped<lower>},
      {"lstrip", strip_method<true, false>},
      {"partition", partition<false>},
      {"removeprefix", remove_affix<false>},
      {"removesuffix", remove_affix<true>},
      {"replace", replace_method},
      {"rfind", find<true, false>},
      {"rindex", find<true, true>},
      {"rjust", justify<'>'>},
      {"rpartition", partition<true>},
      {"rsplit", split_method<true>},
      {"rstrip", strip_method<false, true>},
      {"split", split_method<false>},
      {"splitlines", splitlines},
      {"startswith", has_affix<false>},
      {"strip", strip_method<true, true>},
      {"swapcase", mapped<swap_case>},
      {"title", mapped<title>},
      {"upper", mapped<upper>},
      {"zfill", zfill},
  };
  return kMethods;
}

}  // namespace minfer::jinja
