// format.format(...): {[field][!conversion][:spec]}, a field being a number or a name and .attributes or
// [items].
#include <fmt/format.h>

#include <algorithm>

#include "core/jinja/format.h"

namespace minfer::jinja {
namespace {

class BraceFormatter {
 public:
  BraceFormatter(Runtime& runtime, const Text& format, const Args& args)
      : runtime_(runtime), format_(format), bytes_(format.bytes), args_(args), out_(runtime) {}

  Value run() {
    runtime_.scan(bytes_.size());
    while (at_ < bytes_.size()) {
      const size_t brace = std::min(bytes_.find_first_of("{}", at_), bytes_.size());
      out_.add(*slice_bytes(runtime_, format_, at_, brace));
      at_ = brace;
      if (brace < bytes_.size()) at_brace();
    }
    return Value::text(out_.finish());
  }

 private:
  void at_brace() {
    if (bytes_.substr(at_).starts_with("{{") || bytes_.substr(at_).starts_with("}}")) {
      out_.add(*slice_bytes(runtime_, format_, at_, at_ + 1));
      at_ += 2;
      return;
    }
    if (bytes_[at_] == '}') runtime_.fail("single '}' in a format string");
    const size_t end = bytes_.find_first_of("{}", at_ + 1);
    if (end == std::string_view::npos) runtime_.fail("expected '}' before the end of the format string");
    if (bytes_[end] == '{') runtime_.fail("a replacement field inside another is not supported");
    field(bytes_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
  }

  void field(std::string_view field) {
    const size_t colon = std::min(field.find(':'), field.size());
    const std::string_view spec = colon < field.size() ? field.substr(colon + 1) : std::string_view();
    std::string_view name = field.substr(0, colon);
    const size_t bang = name.find('!');
    const std::string_view conversion = bang == std::string_view::npos ? "" : name.substr(bang + 1);
    name = name.substr(0, bang);
    Value value = look_up(name);
    if (conversion == "r" || conversion == "a") value = Value::text(to_repr(runtime_, value));
    if (conversion == "s") value = Value::text(to_text(runtime_, value));
    if (bang != std::string_view::npos && conversion != "r" && conversion != "a" && conversion != "s") {
      runtime_.fail("unknown conversion in a format string");
    }
    format_value(runtime_, value, parse_spec(spec), out_);
  }

  Value look_up(std::string_view name) {
    const size_t end = std::min(name.find_first_of(".["), name.size());
    Value value = first(name.substr(0, end));
    std::string_view rest = name.substr(end);
    while (!rest.empty()) {
      if (rest[0] == '.') {
        const size_t stop = std::min(rest.find_first_of(".[", 1), rest.size());
        value = get_attribute(runtime_, value, rest.substr(1, stop - 1));
        rest.remove_prefix(stop);
      } else {
        const size_t stop = rest.find(']');
        if (stop == std::string_view::npos || rest[0] != '[') runtime_.fail("missing ']' in a format string");
        const std::string_view key = rest.substr(1, stop - 1);
        const auto index = parse_integer(key, 10);
        value = get_item(runtime_, value, index ? Value::integer(*index) : Value::text(runtime_.view(key)));
        rest.remove_prefix(stop + 1);
      }
    }
    return value;
  }

  Value first(std::string_view name) {
    const bool is_number = !name.empty() && name.find_first_not_of("0123456789") == std::string_view::npos;
    if (name.empty() || is_number) {
      size_t at = 0;
      const size_t index = name.empty() ? n_numbered_++ : static_cast<size_t>(read_size(runtime_, name, at));
      if (index >= args_.positional.size())
        runtime_.fail("replacement index out of range for positional arguments");
      return args_.positional[index];
    }
    runtime_.look_through(args_.named.size());
    for (const NamedValue& argument : args_.named) {
      if (argument.name == name) return argument.value;
    }
    runtime_.fail(fmt::format("no argument {} for the format string", quoted(name.substr(0, 100))));
  }

  FormatSpec parse_spec(std::string_view text) {
    FormatSpec spec;
    if (text.empty()) return spec;
    constexpr std::string_view kAligns = "<>^=";
    const size_t fill_end = next_char(text, 0);
    size_t at = 0;
    if (fill_end < text.size() && kAligns.find(text[fill_end]) != std::string_view::npos) {
      spec.fill = text.substr(0, fill_end);
      at = fill_end;
    }
    const auto peek = [&] { return at < text.size() ? text[at] : '\0'; };
    const auto take_one_of = [&](std::string_view choices) {
      return peek() != '\0' && choices.find(peek()) != std::string_view::npos ? text[at++] : '\0';
    };
    spec.align = take_one_of(kAligns);
    spec.sign = take_one_of("+- ");
    if (spec.sign == '-') spec.sign = '\0';
    spec.has_prefix = take_one_of("#") != '\0';
    if (take_one_of("0") != '\0' && spec.align == '\0') {
      spec.fill = "0";
      spec.align = '=';
    }
    spec.width = read_size(runtime_, text, at);
    spec.thousands = take_one_of(",_");
    if (take_one_of(".") != '\0') spec.precision = read_size(runtime_, text, at);
    spec.type = take_one_of("bcdeEfFgGnosxX%");
    if (at != text.size())
      runtime_.fail(fmt::format("invalid format specifier {}", quoted(text.substr(0, 100))));
    return spec;
  }

  Runtime& runtime_;
  const Text& format_;
  std::string_view bytes_;
  const Args args_;
  size_t at_ = 0, n_numbered_ = 0;
  TextBuilder out_;
};

}  // namespace

Value brace_format(Runtime& runtime, const Text& format, const Args& args) {
  return BraceFormatter(runtime, format, args).run();
}

}  // namespace minfer::jinja
