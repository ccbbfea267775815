#include "core/jinja/lexer.h"

#include "core/jinja/template.h"
#include "tests/core/jinja/rendering.h"
#include "tests/support/catch.h"

using namespace minfer;
using namespace minfer::test;
using jinja::TokenType;

namespace {

// Tokens as one string: data in brackets, the marks of tags as they are, the others apart by blanks.
std::string tokens(const std::string& source) {
  const std::string normalized = jinja::normalize_newlines(source);
  std::string out;
  for (const jinja::Token& token : jinja::tokenize(normalized)) {
    const std::string text(token.text);
    switch (token.type) {
      case TokenType::kData:
        out += "[" + text + "]";
        break;
      case TokenType::kOutputBegin:
        out += "{{";
        break;
      case TokenType::kOutputEnd:
        out += " }}";
        break;
      case TokenType::kTagBegin:
        out += "{%";
        break;
      case TokenType::kTagEnd:
        out += " %}";
        break;
      case TokenType::kEnd:
        break;
      default:
        out += " " + text;
    }
  }
  return out;
}

std::string unescaped(const std::string& literal) {
  return jinja::unescape("'" + literal + "'", literal, 0);
}

}  // namespace

TEST_CASE("jinja lexer: data, outputs, tags and comments", "[jinja][lexer]") {
  CHECK(tokens("") == "");
  CHECK(tokens("plain") == "[plain]");
  CHECK(tokens("a{{ b }}c") == "[a]{{ b }}[c]");
  CHECK(tokens("{% if x %}y{% endif %}") == "{% if x %}[y]{% endif %}");
  CHECK(tokens("a{# {{ no }} #}b") == "[a][b]");
  CHECK(tokens("a { b } %} }}") == "[a { b } %} }}]");
  CHECK(tokens("{") == "[{]");
  CHECK(tokens("{{a|b('c')}}") == "{{ a | b ( c ) }}");
  CHECK(tokens("{{ {'a': {}} }}") == "{{ { a : { } } }}");
  CHECK(tokens("{% raw %}{{ x }}{% endraw %}y") == "[{{ x }}][y]");
}

TEST_CASE("jinja lexer: white space control", "[jinja][lexer]") {
  // "-" takes all white space on its side.
  CHECK(tokens("a \n {{- b -}} \n c") == "[a]{{ b }}[c]");
  CHECK(tokens("a \n {%- if b -%} \n c") == "[a]{% if b %}[c]");
  CHECK(tokens("a \n {#- b -#} \n c") == "[a][c]");
  CHECK(tokens("\u3000{{- b }}") == "{{ b }}");
  // trim_blocks: the newline after a tag or a comment, not after an output.
  CHECK(tokens("{% x %}\n\nb") == "{% x %}[\nb]");
  CHECK(tokens("{# x #}\nb") == "[b]");
  CHECK(tokens("{{ x }}\nb") == "{{ x }}[\nb]");
  CHECK(tokens("{% x +%}\nb") == "{% x %}[\nb]");
  // lstrip_blocks: blanks before a tag or comment that begins its line, not before an output.
  CHECK(tokens("a\n  {% x %}") == "[a\n]{% x %}");
  CHECK(tokens("a\n  {# x #}b") == "[a\n][b]");
  CHECK(tokens("a\n  {{ x }}") == "[a\n  ]{{ x }}");
  CHECK(tokens("a  {% x %}") == "[a  ]{% x %}");
  CHECK(tokens("  {% x %}") == "{% x %}");
  CHECK(tokens("  {%+ x %}") == "[  ]{% x %}");
  CHECK(tokens("{{ 1 }}  {% x %}") == "{{ 1 }}[  ]{% x %}");
  CHECK(tokens("{% x %}\n  {% y %}") == "{% x %}{% y %}");
}

TEST_CASE("jinja lexer: one newline at the end goes, and all are \\n", "[jinja][lexer]") {
  CHECK(tokens("a\n") == "[a]");
  CHECK(tokens("a\n\n") == "[a\n]");
  CHECK(tokens("a\r\nb\rc") == "[a\nb\nc]");
  CHECK(tokens("a\r\n") == "[a]");
}

TEST_CASE("jinja lexer: numbers, strings and operators", "[jinja][lexer]") {
  CHECK(tokens("{{ 1 1.5 1e3 1.5E-7 0x1f 0b1 0o7 1_000 }}") == "{{ 1 1.5 1e3 1.5E-7 0x1f 0b1 0o7 1_000 }}");
  CHECK(tokens("{{ a.0.1 }}") == "{{ a . 0 . 1 }}");
  CHECK(tokens("{{ 1.x }}") == "{{ 1 . x }}");
  CHECK(tokens("{{ 1**2//3 }}") == "{{ 1 ** 2 // 3 }}");
  CHECK(tokens("{{ a>=b!=c }}") == "{{ a >= b != c }}");
  CHECK(tokens(R"({{ 'it\'s' "say \"x\"" '}}' }})") == R"({{ it\'s say \"x\" }} }})");
}

TEST_CASE("jinja lexer: escapes of string literals", "[jinja][lexer]") {
  CHECK(unescaped(R"(a\n\t\\\'\"b)") == "a\n\t\\'\"b");
  CHECK(unescaped(R"(\x41\u00e9\U0001f999\101)") == "A\u00e9\U0001f999A");
  CHECK(unescaped(R"(\ud83e\udd99)") == "\U0001f999");
  CHECK(unescaped("\\\n") == "");
  CHECK(unescaped(R"(\q)") == R"(\q)");
  CHECK(unescaped("é猫") == "é猫");
  CHECK_THROWS_AS(unescaped(R"(\x4)"), jinja::Error);
  CHECK_THROWS_AS(unescaped(R"(\u12)"), jinja::Error);
  CHECK_THROWS_AS(unescaped(R"(\ud800)"), jinja::Error);
  CHECK_THROWS_AS(unescaped(R"(\U00110000)"), jinja::Error);
}
