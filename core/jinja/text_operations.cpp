#include "core/jinja/text_operations.h"

#include <algorithm>

#include "core/jinja/unicode_case.h"

namespace minfer::jinja {
namespace {

bool is_space_char(std::string_view character) {
  return is_space(code_point(character));
}

bool is_line_end(std::string_view character) {
  const uint32_t code = code_point(character);
  return (code >= 0x0a && code <= 0x0d) || (code >= 0x1c && code <= 0x1e) || code == 0x85 || code == 0x2028 ||
         code == 0x2029;
}

template <typename Test>
size_t skip_chars(std::string_view bytes, size_t at, Test&& test) {
  while (at < bytes.size()) {
    const size_t end = next_char(bytes, at);
    if (!test(bytes.substr(at, end - at))) break;
    at = end;
  }
  return at;
}

template <typename Test>
size_t skip_chars_back(std::string_view bytes, size_t end, Test&& test) {
  while (end > 0) {
    const size_t at = previous_char(bytes, end);
    if (!test(bytes.substr(at, end - at))) break;
    end = at;
  }
  return end;
}

bool is_not_space(std::string_view character) {
  return !is_space_char(character);
}

template <typename Each>
void for_each_plain_char(std::string_view bytes, Each&& each) {
  for (size_t at = 0; at < bytes.size();) {
    const size_t end = next_char(bytes, at);
    each(bytes.substr(at, end - at));
    at = end;
  }
}

}  // namespace

const Text* strip(Runtime& runtime, const Text& text, const Text* chars, bool at_left, bool at_right) {
  // A set of many characters is looked through for each one of the text.
  runtime.scan(text.bytes.size() * (chars ? chars->bytes.size() : 1));
  const auto goes = [&](std::string_view character) {
    return chars ? chars->bytes.find(character) != std::string_view::npos : is_space_char(character);
  };
  const size_t begin = at_left ? skip_chars(text.bytes, 0, goes) : 0;
  const size_t end = at_right ? skip_chars_back(text.bytes, text.bytes.size(), goes) : text.bytes.size();
  return slice_bytes(runtime, text, begin, std::max(begin, end));
}

std::vector<Value> split(Runtime& runtime, const Text& text, std::string_view separator, size_t n_most,
                         bool from_right) {
  runtime.scan(text.bytes.size());
  std::vector<size_t> cuts;
  if (from_right) {
    cuts = rfind_all(text.bytes, separator, n_most);
    std::reverse(cuts.begin(), cuts.end());
  } else {
    for (size_t at = 0; cuts.size() < n_most; at = cuts.back() + separator.size()) {
      at = find_bytes(text.bytes, separator, at);
      if (at == std::string_view::npos) break;
      cuts.push_back(at);
    }
  }
  runtime.step(cuts.size());
  std::vector<Value> parts;
  size_t begin = 0;
  for (const size_t cut : cuts) {
    parts.push_back(Value::text(slice_bytes(runtime, text, begin, cut)));
    begin = cut + separator.size();
  }
  parts.push_back(Value::text(slice_bytes(runtime, text, begin, text.bytes.size())));
  return parts;
}

std::vector<Value> split_spaces(Runtime& runtime, const Text& text, size_t n_most, bool from_right) {
  runtime.scan(text.bytes.size());
  const std::string_view bytes = text.bytes;
  std::vector<Value> parts;
  const auto add = [&](size_t begin, size_t end) {
    runtime.step();
    parts.push_back(Value::text(slice_bytes(runtime, text, begin, end)));
  };
  if (from_right) {
    for (size_t end = skip_chars_back(bytes, bytes.size(), is_space_char); end > 0;) {
      const size_t begin = parts.size() < n_most ? skip_chars_back(bytes, end, is_not_space) : 0;
      add(begin, end);
      end = skip_chars_back(bytes, begin, is_space_char);
    }
    std::reverse(parts.begin(), parts.end());
    return parts;
  }
  for (size_t begin = skip_chars(bytes, 0, is_space_char); begin < bytes.size();) {
    const size_t end = parts.size() < n_most ? skip_chars(bytes, begin, is_not_space) : bytes.size();
    add(begin, end);
    begin = skip_chars(bytes, end, is_space_char);
  }
  return parts;
}

std::vector<Value> split_lines(Runtime& runtime, const Text& text, bool keeps_ends) {
  runtime.scan(text.bytes.size());
  const std::string_view bytes = text.bytes;
  std::vector<Value> lines;
  for (size_t begin = 0; begin < bytes.size();) {
    const size_t end =
        skip_chars(bytes, begin, [](std::string_view character) { return !is_line_end(character); });
    size_t next = end < bytes.size() ? next_char(bytes, end) : end;
    if (bytes.substr(end).starts_with("\r\n")) next = end + 2;
    runtime.step();
    lines.push_back(Value::text(slice_bytes(runtime, text, begin, keeps_ends ? next : end)));
    begin = next;
  }
  return lines;
}

const Text* replace(Runtime& runtime, const Text& text, const Text& old, const Text& with, int64_t n_most) {
  runtime.scan(text.bytes.size());
  const size_t most = n_most < 0 ? SIZE_MAX : static_cast<size_t>(n_most);
  TextBuilder out(runtime);
  size_t n_replaced = 0, at = 0;
  if (old.bytes.empty()) {
    // Before every character and at the end.
    for (; n_replaced < most && at < text.bytes.size(); ++n_replaced) {
      const size_t end = next_char(text.bytes, at);
      out.add(with);
      out.add(*slice_bytes(runtime, text, at, end));
      at = end;
    }
    if (n_replaced < most) out.add(with);
  }
  for (; n_replaced < most && !old.bytes.empty(); ++n_replaced) {
    const size_t found = find_bytes(text.bytes, old.bytes, at);
    if (found == std::string_view::npos) break;
    runtime.step();
    out.add(*slice_bytes(runtime, text, at, found));
    out.add(with);
    at = found + old.bytes.size();
  }
  if (at == 0 && out.size() == 0) return &text;
  out.add(*slice_bytes(runtime, text, at, text.bytes.size()));
  return out.finish();
}

const Text* join(Runtime& runtime, const std::vector<Value>& items, const Text& separator) {
  TextBuilder out(runtime);
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out.add(separator);
    out.add(*to_text(runtime, items[i]));
  }
  return out.finish();
}

const Text* center(Runtime& runtime, const Text& text, int64_t width, std::string_view fill) {
  width = std::max<int64_t>(width, 0);
  runtime.check_text_size(static_cast<size_t>(width));
  const auto n_padding = std::max<int64_t>(width - static_cast<int64_t>(count_chars(text)), 0);
  const int64_t n_before = n_padding / 2 + (n_padding & width & 1);
  TextBuilder out(runtime);
  out.fill(fill, static_cast<size_t>(n_before));
  out.add(text);
  out.fill(fill, static_cast<size_t>(n_padding - n_before));
  return out.finish();
}

const Text* escape_html(Runtime& runtime, const Text& text) {
  runtime.scan(text.bytes.size());
  TextBuilder out(runtime);
  for_each_stretch(text, [&](std::string_view stretch, bool is_input) {
    std::string written;
    for (const char c : stretch) {
      switch (c) {
        case '&':
          written += "&amp;";
          break;
        case '<':
          written += "&lt;";
          break;
        case '>':
          written += "&gt;";
          break;
        case '"':
          written += "&#34;";
          break;
        case '\'':
          written += "&#39;";
          break;
        default:
          written += c;
      }
    }
    out.add(written, is_input);
  });
  return out.finish();
}

bool is_ascii(std::string_view bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](char c) { return static_cast<uint8_t>(c) < 0x80; });
}

bool is_lower_text(std::string_view bytes) {
  bool has_lower = false, has_upper = false;
  for_each_plain_char(bytes, [&](std::string_view character) {
    has_lower |= is_lower(character);
    has_upper |= is_upper(character);
  });
  return has_lower && !has_upper;
}

bool is_upper_text(std::string_view bytes) {
  bool has_lower = false, has_upper = false;
  for_each_plain_char(bytes, [&](std::string_view character) {
    has_lower |= is_lower(character);
    has_upper |= is_upper(character);
  });
  return has_upper && !has_lower;
}

bool is_title_text(std::string_view bytes) {
  bool is_in_word = false, is_title = true, has_cased = false;
  for_each_plain_char(bytes, [&](std::string_view character) {
    if (is_upper(character) ? is_in_word : is_lower(character) && !is_in_word) is_title = false;
    is_in_word = is_cased(character);
    has_cased |= is_in_word;
  });
  return has_cased && is_title;
}

bool is_space_text(std::string_view bytes) {
  return !bytes.empty() && skip_chars(bytes, 0, is_space_char) == bytes.size();
}

}  // namespace minfer::jinja
