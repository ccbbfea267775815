// Private to the interpreter: source to tokens, white space already controlled: "-" and "+" at tags,
// trim_blocks (the newline after a statement or comment goes), lstrip_blocks (so do blanks before one that
// begins its line). After Jinja2's lexer (Ronacher).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace minfer::jinja {

enum class TokenType : uint8_t {
  kData,
  kOutputBegin,
  kOutputEnd,
  kTagBegin,
  kTagEnd,
  kName,
  kString,
  kInteger,
  kFloat,
  kOperator,
  kEnd,
};

struct Token {
  TokenType type = TokenType::kEnd;
  uint32_t offset = 0;    // of its first byte in the source
  std::string_view text;  // as in the source; of a string, between the quotes
};

// Newlines as "\n", and not the last one: what the other functions take as the source.
std::string normalize_newlines(std::string_view source);

// Views into `source`. The last token is kEnd. Throws Error.
std::vector<Token> tokenize(std::string_view source);

// What a string literal stands for. Throws Error; `offset` is the literal's.
std::string unescape(std::string_view source, std::string_view literal, uint32_t offset);

}  // namespace minfer::jinja
