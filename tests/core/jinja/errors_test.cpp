// What fails says where: line and column of the token, counted from 1, columns in characters.
#include "tests/core/jinja/rendering.h"

using namespace minfer;
using namespace minfer::test;

TEST_CASE("jinja: parse errors name line and column", "[jinja]") {
  CHECK(failure("{{ 1 + }}") == "1:8: expected an expression, found the end of the output");
  CHECK(failure("a\nb {% if x %}c") == "2:6: 'if' without its 'endif'");
  CHECK(failure("{% for x in y %}{% endif %}") == "1:20: unknown tag 'endif'");
  CHECK(failure("\n\n   {% nope %}") == "3:7: unknown tag 'nope'");
  CHECK(failure("猫é {{ a b }}") == "1:9: expected the end of the output, found 'b'");
  CHECK(failure("{{ 'abc }}") == "1:4: a string without its end");
  CHECK(failure("x\n {{ 1") == "2:2: an output without its end, }}");
  CHECK(failure("{% if x") == "1:1: a tag without its end, %}");
  CHECK(failure("a {# b") == "1:3: a comment without its end, #}");
  CHECK(failure("{% raw %}x") == "1:1: a raw block without its endraw");
  CHECK(failure("{{ 1 @ 2 }}") == "1:6: unexpected character '@'");
  CHECK(failure("{{ (1] }}") == "1:6: unexpected ']', expected ')'");
  CHECK(failure("{{ 1) }}") == "1:5: unexpected ')'");
  CHECK(failure("{% set 5 = 1 %}") == "1:8: expected a name, found '5'");
  CHECK(failure("{% set none = 1 %}") == "1:8: cannot assign to 'none'");
  CHECK(failure("{{ f(a=1, 2) }}") == "1:11: positional arguments go before named ones");
  CHECK(failure("{{ 99999999999999999999 }}") == "1:4: '99999999999999999999' is no integer of 64 bits");
  CHECK(failure("{% break %}") == "1:4: 'break' outside a loop");
  CHECK(failure("{% macro f(a=1, b) %}{% endmacro %}") ==
        "1:17: a parameter without a default after one with a default");
}

TEST_CASE("jinja: errors of evaluation name line and column", "[jinja]") {
  CHECK(failure("a\n{{ x.y }}") == "2:6: 'x' is undefined");
  CHECK(failure("{% set d = {} %}\n{{ d.a.b }}") == "2:8: 'dict object' has no attribute 'a'");
  CHECK(failure("{{ 1 + 'a' }}") == "1:6: unsupported operand type(s) for +: 'int' and 'str'");
  CHECK(failure("{{ 'a' + 1 }}") == "1:8: can only concatenate str (not \"int\") to str");
  CHECK(failure("{{ 1 < 'a' }}") == "1:6: '<' not supported between instances of 'int' and 'str'");
  CHECK(failure("{{ 1 // 0 }}") == "1:6: division by zero");
  CHECK(failure("{{ 9223372036854775807 + 1 }}") == "1:24: an integer beyond 64 bits");
  CHECK(failure("{{ 10 ** 20 }}") == "1:7: an integer beyond 64 bits");
  CHECK(failure("{{ -(-9223372036854775807 - 1) }}") == "1:4: an integer beyond 64 bits");
  CHECK(failure("{{ 'x'|nope }}") == "1:8: no filter named 'nope'");
  CHECK(failure("{{ 'x' is nope }}") == "1:11: no test named 'nope'");
  CHECK(failure("{{ 'x'.nope() }}") == "1:8: 'str object' has no attribute 'nope'");
  CHECK(failure("{{ 5() }}") == "1:4: 'int' object is not callable");
  CHECK(failure("{% for x in 5 %}{% endfor %}") == "1:13: 'int' object is not iterable");
  CHECK(failure("{% set a, b = [1] %}") == "1:8: cannot unpack 1 values into 2 names");
  CHECK(failure("{{ {[]: 1} }}") == "1:5: unhashable type: 'list'");
  CHECK(failure("{% macro f(a) %}{% endmacro %}\n{{ f(1, 2) }}") ==
        "2:4: macro 'f' takes not more than 1 argument(s)");
  CHECK(failure("{{ 'a'|replace('b') }}") == "1:8: replace needs its argument 'new'");
  CHECK(failure("{{ strftime_now('%Q') }}") == "1:4: strftime_now: unknown conversion in '%Q'");
}

TEST_CASE("jinja: raise_exception gives its message alone", "[jinja]") {
  try {
    render("{% if true %}\n  {{ raise_exception('Roles must ' ~ 'alternate') }}{% endif %}");
    FAIL("nothing was raised");
  } catch (const jinja::Error& error) {
    CHECK(error.raised());
    CHECK(std::string(error.what()) == "Roles must alternate");
    CHECK(error.line() == 2);
    CHECK(error.column() == 6);
  }
}

TEST_CASE("jinja: other errors say their place in what()", "[jinja]") {
  try {
    render("\n {{ nope.x }}");
    FAIL("nothing was thrown");
  } catch (const jinja::Error& error) {
    CHECK(!error.raised());
    CHECK(std::string(error.what()) == "line 2, column 10: 'nope' is undefined");
    CHECK(error.message() == "'nope' is undefined");
  }
}
