// Escapes of string literals: Python's.
#include <fmt/format.h>

#include <charconv>

#include "core/jinja/lexer.h"
#include "core/jinja/runtime.h"
#include "core/utf8.h"

namespace minfer::jinja {
namespace {

class Unescaper {
 public:
  Unescaper(std::string_view source, std::string_view literal, uint32_t offset)
      : source_(source), literal_(literal), offset_(offset) {}

  std::string run() {
    while (at_ < literal_.size()) {
      const char c = literal_[at_++];
      if (c != '\\' || at_ == literal_.size()) {
        out_ += c;
      } else {
        escape();
      }
    }
    return std::move(out_);
  }

 private:
  [[noreturn]] void fail(const std::string& message) const { throw error_at(source_, offset_, message); }

  void escape() {
    constexpr std::string_view kLetters = "abfnrtv\\'\"", kMeanings = "\a\b\f\n\r\t\v\\'\"";
    const char c = literal_[at_++];
    if (const size_t which = kLetters.find(c); which != std::string_view::npos) {
      out_ += kMeanings[which];
    } else if (c >= '0' && c <= '7') {
      octal(c);
    } else if (c == 'x' || c == 'u' || c == 'U') {
      character(hexadecimal(c == 'x' ? 2 : c == 'u' ? 4 : 8));
    } else if (c == 'N') {
      fail("characters by name, \\N{...}, are not supported");
    } else if (c != '\n') {  // an escaped line end joins the lines
      out_ += '\\';
      out_ += c;
    }
  }

  void octal(char first) {
    auto code = static_cast<uint32_t>(first - '0');
    for (int i = 0; i < 2 && at_ < literal_.size() && literal_[at_] >= '0' && literal_[at_] <= '7'; ++i) {
      code = code * 8 + static_cast<uint32_t>(literal_[at_++] - '0');
    }
    character(code);
  }

  uint32_t hexadecimal(size_t n_digits) {
    const std::string_view digits = literal_.substr(at_, n_digits);
    uint32_t code = 0;
    const char* end = digits.data() + digits.size();
    const auto [stop, error] = std::from_chars(digits.data(), end, code, 16);
    if (digits.size() < n_digits || error != std::errc() || stop != end) {
      fail(fmt::format("an escape of {} hexadecimal digits is cut short", n_digits));
    }
    at_ += n_digits;
    return code;
  }

  void character(uint32_t code) {
    const bool is_first_half = code >= 0xd800 && code < 0xdc00;
    if (is_first_half && literal_.substr(at_).starts_with("\\u")) {
      at_ += 2;
      const uint32_t second = hexadecimal(4);
      if (second >= 0xdc00 && second < 0xe000) code = 0x10000 + ((code & 0x3ff) << 10 | (second & 0x3ff));
    }
    if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) {
      fail(fmt::format("an escape for U+{:04X}, which is no character", code));
    }
    out_ += utf8_encode(code).view();
  }

  std::string_view source_, literal_;
  uint32_t offset_;
  size_t at_ = 0;
  std::string out_;
};

}  // namespace

std::string unescape(std::string_view source, std::string_view literal, uint32_t offset) {
  return Unescaper(source, literal, offset).run();
}

}  // namespace minfer::jinja
