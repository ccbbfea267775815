#include "core/jinja/lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/jinja/runtime.h"

namespace minfer::jinja {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_name_char(char c) {
  // Bytes of characters beyond ASCII are let through: Python has names in any script.
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<uint8_t>(c) >= 0x80;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  std::vector<Token> run() {
    while (at_ < source_.size()) text();
    add(TokenType::kEnd, source_.size(), {});
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void fail(size_t offset, const std::string& message) const {
    throw error_at(source_, offset, message);
  }

  bool sees(std::string_view what) const { return source_.substr(at_).starts_with(what); }

  bool skip(std::string_view what) {
    if (!sees(what)) return false;
    at_ += what.size();
    return true;
  }

  void skip_space() { at_ = source_.size() - trim_left(source_.substr(at_)).size(); }

  void add(TokenType type, size_t offset, std::string_view token_text) {
    tokens_.push_back({type, static_cast<uint32_t>(offset), token_text});
  }

  // Data up to the next tag, then that tag.
  void text() {
    const size_t begin = at_;
    const bool begins_line = begin == 0 || source_[begin - 1] == '\n';
    size_t tag = begin;
    while (true) {
      tag = source_.find('{', tag);
      if (tag == std::string_view::npos || tag + 1 >= source_.size()) {
        at_ = source_.size();
        return data(begin, at_);
      }
      const char second = source_[tag + 1];
      if (second == '{' || second == '%' || second == '#') break;
      ++tag;
    }
    at_ = tag + 2;
    const char kind = source_[tag + 1];
    const char sign = sees("-") || sees("+") ? source_[at_] : '\0';
    at_ += sign != '\0';
    data(begin, trimmed_end(begin, tag, sign, kind != '{', begins_line));
    if (kind == '#') return comment(tag);
    if (kind == '%' && raw(tag)) return;
    add(kind == '{' ? TokenType::kOutputBegin : TokenType::kTagBegin, tag, source_.substr(tag, 2));
    expression(tag, kind == '{');
  }

  // Where data [begin, end) ends once the tag after it has taken its white space.
  size_t trimmed_end(size_t begin, size_t end, char sign, bool strips_blanks, bool begins_line) const {
    const std::string_view bytes = source_.substr(begin, end - begin);
    if (sign == '-') return begin + trim_right(bytes).size();
    if (sign == '+' || !strips_blanks) return end;
    const size_t line = bytes.rfind('\n') + 1;  // npos + 1 is 0
    const bool is_line_begin = line > 0 || begins_line;
    return is_line_begin && trim_right(bytes.substr(line)).empty() ? begin + line : end;
  }

  void data(size_t begin, size_t end) {
    if (end > begin) add(TokenType::kData, begin, source_.substr(begin, end - begin));
  }

  // A closing mark with its white space; false where it is not here.
  bool close(std::string_view mark, bool trims_newline) {
    const size_t begin = at_;
    const bool strips = skip("-");
    if (!strips && trims_newline) skip("+");
    if (!skip(mark)) {
      at_ = begin;
      return false;
    }
    if (strips) {
      skip_space();
    } else if (trims_newline && source_[at_ - mark.size() - 1] != '+') {
      skip("\n");
    }
    return true;
  }

  void comment(size_t tag) {
    while (at_ < source_.size()) {
      at_ = std::min(source_.find_first_of("-+#", at_), source_.size());
      if (close("#}", true)) return;
      ++at_;
    }
    fail(tag, "a comment without its end, #}");
  }

  // After "{%": a whole raw block, or nothing taken.
  bool raw(size_t tag) {
    const size_t begin = at_;
    skip_space();
    const bool is_raw = skip("raw") && (skip_space(), close("%}", false));
    if (!is_raw) {
      at_ = begin;
      return false;
    }
    const size_t body = at_;
    const bool begins_line = source_[body - 1] == '\n';
    for (size_t end = source_.find("{%", body); end != std::string_view::npos;
         end = source_.find("{%", end + 2)) {
      at_ = end + 2;
      const char sign = sees("-") || sees("+") ? source_[at_] : '\0';
      at_ += sign != '\0';
      skip_space();
      if (!skip("endraw")) continue;
      skip_space();
      if (!close("%}", true)) continue;
      const size_t after = at_;
      data(body, trimmed_end(body, end, sign, true, begins_line));
      at_ = after;
      return true;
    }
    fail(tag, "a raw block without its endraw");
  }

  // The tokens inside {{ }} or {% %}, and its end. Inside brackets no tag ends.
  void expression(size_t tag, bool is_output) {
    std::string open_brackets;
    while (true) {
      skip_space();
      if (at_ >= source_.size())
        fail(tag, is_output ? "an output without its end, }}" : "a tag without its end, %}");
      const size_t begin = at_;
      if (open_brackets.empty() && close(is_output ? "}}" : "%}", !is_output)) {
        add(is_output ? TokenType::kOutputEnd : TokenType::kTagEnd, begin, source_.substr(begin, 2));
        return;
      }
      token(open_brackets);
    }
  }

  void token(std::string& open_brackets) {
    const size_t begin = at_;
    const char c = source_[at_];
    if (is_digit(c)) return number();
    if (is_name_char(c)) {
      while (at_ < source_.size() && is_name_char(source_[at_])) ++at_;
      return add(TokenType::kName, begin, source_.substr(begin, at_ - begin));
    }
    if (c == '"' || c == '\'') return string(c);
    const std::string_view op = operator_here();
    if (op.empty()) fail(begin, fmt::format("unexpected character {}", quoted_char(begin)));
    balance(op, open_brackets);
    at_ += op.size();
    add(TokenType::kOperator, begin, op);
  }

  std::string quoted_char(size_t begin) const {
    const std::string_view character = source_.substr(begin, next_char(source_, begin) - begin);
    const auto byte = static_cast<uint8_t>(character[0]);
    const bool is_readable = code_point(character) != kMalformed && byte >= 0x20 && byte != 0x7f;
    return is_readable ? fmt::format("'{}'", character) : fmt::format("0x{:02x}", byte);
  }

  std::string_view operator_here() const {
    static constexpr std::array<std::string_view, 26> kOperators = {
        "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
        "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};
    const auto* found = std::find_if(kOperators.begin(), kOperators.end(), [&](auto op) { return sees(op); });
    return found == kOperators.end() ? std::string_view() : source_.substr(at_, found->size());
  }

  void balance(std::string_view op, std::string& open_brackets) const {
    constexpr std::string_view kOpen = "([{", kClose = ")]}";
    if (const size_t which = kOpen.find(op); which != std::string_view::npos) {
      open_brackets.push_back(kClose[which]);
    } else if (kClose.find(op) != std::string_view::npos) {
      if (open_brackets.empty()) fail(at_, fmt::format("unexpected '{}'", op));
      if (open_brackets.back() != op[0])
        fail(at_, fmt::format("unexpected '{}', expected '{}'", op, open_brackets.back()));
      open_brackets.pop_back();
    }
  }

  // Digits, each underscore between two of them.
  void digits(auto is_its_digit) {
    while (at_ < source_.size()) {
      const bool joins = source_[at_] == '_' && at_ + 1 < source_.size() && is_its_digit(source_[at_ + 1]);
      if (!joins && !is_its_digit(source_[at_])) return;
      at_ += joins ? 2 : 1;
    }
  }

  void number() {
    const size_t begin = at_;
    const auto add_number = [&](TokenType type) { add(type, begin, source_.substr(begin, at_ - begin)); };
    if (source_[at_] == '0' && at_ + 1 < source_.size()) {
      const char base = static_cast<char>(source_[at_ + 1] | 0x20);
      const auto is_its_digit = [&](char c) {
        return base == 'x' ? std::isxdigit(static_cast<uint8_t>(c)) != 0
                           : c >= '0' && c <= (base == 'o' ? '7' : '1');
      };
      if (base == 'x' || base == 'o' || base == 'b') {
        at_ += 2;
        digits(is_its_digit);
        return add_number(TokenType::kInteger);
      }
    }
    digits(is_digit);
    const size_t whole_end = at_;
    const bool is_after_dot = begin > 0 && source_[begin - 1] == '.';  // x.0.1: two indices
    if (!is_after_dot && skip(".") && at_ < source_.size() && is_digit(source_[at_])) {
      digits(is_digit);
    } else {
      at_ = whole_end;
    }
    if (!is_after_dot) exponent();
    const bool is_integer = at_ == whole_end;
    const std::string_view text = source_.substr(begin, at_ - begin);
    if (is_integer && text[0] == '0' && text.find_first_not_of("0_") != std::string_view::npos) {
      fail(begin, "zeros before an integer");
    }
    add_number(is_integer ? TokenType::kInteger : TokenType::kFloat);
  }

  void exponent() {
    const size_t begin = at_;
    if (!skip("e") && !skip("E")) return;
    if (!skip("+")) skip("-");
    if (at_ < source_.size() && is_digit(source_[at_])) return digits(is_digit);
    at_ = begin;
  }

  void string(char quote) {
    const size_t begin = at_++;
    while (at_ < source_.size() && source_[at_] != quote) at_ += source_[at_] == '\\' ? 2 : 1;
    if (at_ >= source_.size()) fail(begin, "a string without its end");
    add(TokenType::kString, begin, source_.substr(begin + 1, at_ - begin - 1));
    ++at_;
  }

  std::string_view source_;
  size_t at_ = 0;
  std::vector<Token> tokens_;
};

}  // namespace

std::string normalize_newlines(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    const bool is_return = source[i] == '\r';
    if (is_return && i + 1 < source.size() && source[i + 1] == '\n') ++i;
    out += is_return ? '\n' : source[i];
  }
  if (out.ends_with('\n')) out.pop_back();
  return out;
}

std::vector<Token> tokenize(std::string_view source) {
  return Lexer(source).run();
}

}  // namespace minfer::jinja
