#include "apps/escape.h"

#include <charconv>
#include <cstdint>
#include <optional>

#include "core/error.h"
#include "core/utf8.h"

namespace minfer {
namespace {

constexpr std::string_view kNames = "ntr\\\"'", kBytes = "\n\t\r\\\"'";

std::optional<uint32_t> parse_hex(std::string_view digits) {
  uint32_t value = 0;
  const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  if (digits.empty() || fault != std::errc() || end != digits.data() + digits.size()) return {};
  return value;
}

bool is_scalar(uint32_t code) {
  return code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
}

class Escapes {
 public:
  explicit Escapes(std::string_view text) : text_(text) {}

  std::string read() {
    for (size_t slash; (slash = text_.find('\\', begin_)) != std::string_view::npos;) {
      out_ += text_.substr(begin_, slash - begin_);
      begin_ = slash;
      read_one();
    }
    return std::move(out_ += text_.substr(begin_));
  }

 private:
  void read_one() {
    const size_t start = begin_;
    const char name = start + 1 < text_.size() ? text_[start + 1] : '\0';
    const bool braces = name == 'u' && start + 2 < text_.size() && text_[start + 2] == '{';
    if (const size_t known = kNames.find(name); known != std::string_view::npos) {
      out_ += kBytes[known];
      begin_ += 2;
    } else if (name == 'x') {
      out_ += static_cast<char>(code(2, 2, "\\x needs two hex digits"));
    } else if (name == 'u') {
      const uint32_t character =
          braces ? code_in_braces() : code(2, 4, "\\u needs four hex digits, or some in braces");
      if (!is_scalar(character)) refuse(start, begin_ - start, "not a character of Unicode");
      out_ += utf8_encode(character).view();
    } else {
      refuse(start, 2, "none of \\n \\t \\r \\\\ \\\" \\' \\xHH \\uHHHH \\u{H...}");
    }
  }

  uint32_t code_in_braces() {
    const size_t close = text_.find('}', begin_);
    if (close == std::string_view::npos) refuse(begin_, 3, "the brace is not closed");
    const auto value = parse_hex(text_.substr(begin_ + 3, close - begin_ - 3));
    if (!value) refuse(begin_, close + 1 - begin_, "\\u{} needs hex digits, at most 10ffff");
    begin_ = close + 1;
    return *value;
  }

  // The number of n digits that stand `skipped` bytes behind the backslash.
  uint32_t code(size_t skipped, size_t n, const char* need) {
    const std::string_view digits = text_.substr(begin_ + skipped, n);
    const auto value = parse_hex(digits);
    if (!value || digits.size() != n) refuse(begin_, skipped + n, need);
    begin_ += skipped + n;
    return *value;
  }

  [[noreturn]] void refuse(size_t at, size_t n, const std::string& why) const {
    throw Error(ExitCode::kUsage, "--escape: '" + std::string(text_.substr(at, n)) + "' at byte " +
                                      std::to_string(at + 1) + " of the prompt: " + why);
  }

  std::string_view text_;
  size_t begin_ = 0;  // of what has not been read
  std::string out_;
};

}  // namespace

std::string read_escapes(std::string_view text) {
  return Escapes(text).read();
}

}  // namespace minfer
