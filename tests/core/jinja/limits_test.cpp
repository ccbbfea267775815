// Templates come from strangers: whatever they do, an error or a text within the limits, and soon.
#include <fmt/format.h>

#include <chrono>

#include "tests/core/jinja/rendering.h"

using namespace minfer;
using namespace minfer::test;

namespace {

std::string repeated(const std::string& piece, size_t n) {
  std::string out;
  for (size_t i = 0; i < n; ++i) out += piece;
  return out;
}

// It fails, with `part` in the message.
bool fails_with(const std::string& source, const std::string& part, const jinja::Limits& limits = {}) {
  const std::string message = failure(source, limits);
  UNSCOPED_INFO(source.substr(0, 200) << " -> " << message);
  return !message.empty() && message.find(part) != std::string::npos;
}

// `use`, a hundred times, takes more steps than its nodes alone would.
bool runs_out(const std::string& use) {
  jinja::Limits few;
  few.n_steps = 4000;
  Json names = Json::object();
  for (int i = 0; i < 1000; ++i) names[fmt::format("k{}", i)] = i;
  const Json variables = {{"r", std::string(2000, 'a')},         {"s", std::string(100'000, 'a')},
                          {"t", std::string(99'999, 'a') + "b"}, {"digits", std::string(100'000, '1')},
                          {"zeros", std::vector<int>(1000, 0)},  {"names", names}};
  const std::string message =
      failure("{% for i in range(100) %}{% set _ = " + use + " %}{% endfor %}", few, variables);
  UNSCOPED_INFO(use << " -> " << message);
  return message.find("more than 4000 steps") != std::string::npos;
}

}  // namespace

TEST_CASE("jinja limits: nesting in the source is refused, not recursed into", "[jinja][limits]") {
  constexpr size_t kMany = 50'000;
  const std::string deep = "nested more than 100 deep";
  for (const char* opener :
       {"(", "[", "{'a':", "f(", "x[", "-", "+", "not ", "x.y(", "(-", "a|b(", "x is y("}) {
    const std::string begin = repeated(opener, kMany);
    CHECK(fails_with("{{ " + begin, ""));
    // With the brackets closed at the end, as the lexer wants them.
    std::string end;
    for (auto c = begin.rbegin(); c != begin.rend(); ++c) {
      if (*c == '(') end += ')';
      if (*c == '[') end += ']';
      if (*c == '{') end += '}';
    }
    CHECK(fails_with("{{ " + begin + "1" + end + " }}", deep));
  }
  CHECK(fails_with("{{ x" + repeated(".y", kMany) + " }}", deep));
  CHECK(fails_with("{{ x" + repeated("[0]", kMany) + " }}", deep));
  CHECK(fails_with("{{ x" + repeated("()", kMany) + " }}", deep));
  CHECK(fails_with("{{ x" + repeated("|upper", kMany) + " }}", deep));
  CHECK(fails_with("{{ 1" + repeated(" if x else 1", kMany) + " }}", deep));
  CHECK(fails_with(repeated("{% if x %}", kMany), deep));
  CHECK(fails_with(repeated("{% for x in y %}", kMany), deep));
  CHECK(fails_with(repeated("{% macro f() %}", kMany), deep));
  CHECK(fails_with(repeated("{% with %}", kMany), deep));
  CHECK(fails_with("{% set " + repeated("(", kMany) + "x" + repeated(")", kMany) + " = 1 %}", deep));
}

TEST_CASE("jinja limits: long is not deep", "[jinja][limits]") {
  CHECK(render("{{ 1" + repeated(" + 1", 10'000) + " }}").text == "10001");
  CHECK(render("{{ 'a'" + repeated(" ~ 'a'", 10'000) + " }}").text.size() == 10'001);
  CHECK(render("{{ 0" + repeated(" or 0", 10'000) + " }}").text == "0");
  CHECK(render("{{ 1" + repeated(" == 1", 10'000) + " }}").text == "True");
  CHECK(render("{{ [" + repeated("1,", 10'000) + "]|length }}").text == "10000");
  CHECK(render("{% if 0 %}" + repeated("{% elif 0 %}", 10'000) + "{% else %}x{% endif %}").text == "x");
  CHECK(render(repeated("{{ 1 }}", 10'000)).text.size() == 10'000);
}

TEST_CASE("jinja limits: endless recursion ends", "[jinja][limits]") {
  const std::string deep = "calls nested more than 100 deep";
  CHECK(fails_with("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", deep));
  CHECK(fails_with("{% macro f() %}{{ g() }}{% endmacro %}{% macro g() %}{{ f() }}{% endmacro %}{{ f() }}",
                   deep));
  CHECK(fails_with("{% macro f(x=f()) %}{% endmacro %}{{ f() }}", ""));
  CHECK(fails_with("{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}", deep));
  CHECK(fails_with(
      "{% macro f() %}{% call f() %}{{ caller() }}{% endcall %}{{ caller() }}{% endmacro %}{{ f() }}", deep));
  // As deep in nodes as in calls.
  std::string body = "f()";
  for (int i = 0; i < 20; ++i) body = "[" + body + "]|first";
  CHECK(fails_with("{% macro f() %}{{ " + body + " }}{% endmacro %}{{ f() }}", deep));
  // What real templates need: a schema that nests 40 levels.
  CHECK(render("{% macro f(n) %}{% if n %}{% for i in [1] %}{% if true %}{{ '(' ~ f(n - 1) ~ ')' }}{% endif "
               "%}{% endfor %}"
               "{% endif %}{% endmacro %}{{ f(40) }}")
            .text == repeated("(", 40) + repeated(")", 40));
}

TEST_CASE("jinja limits: steps", "[jinja][limits]") {
  const std::string steps = "more than 2000000 steps";
  CHECK(
      fails_with("{% for a in range(1000) %}{% for b in range(1000) %}{% for c in range(1000) %}{% endfor %}"
                 "{% endfor %}{% endfor %}",
                 "steps"));
  CHECK(fails_with(
      "{% set l = [1] %}{% for i in range(99999) %}{% for x in l %}{{ l.append(1) }}{% endfor %}{% endfor %}",
      ""));
  jinja::Limits few;
  few.n_steps = 100;
  CHECK(fails_with("{{ 1" + repeated("+ 1", 200) + " }}", "more than 100 steps", few));
  CHECK(fails_with("{% set s = 'ab' * 1000000 %}{% for i in range(100000) %}{{ 'x' in s }}{% endfor %}",
                   steps));
  CHECK(fails_with("{% set s = 'é' * 1000000 %}{% for i in range(100000) %}{{ s[i] }}{% endfor %}", steps));
}

TEST_CASE("jinja limits: many names are not looked through for nothing", "[jinja][limits]") {
  std::string sets, parameters, arguments;
  for (int i = 0; i < 20'000; ++i) {
    std::string name = "a";
    name += std::to_string(i);
    sets += "{% set " + name + " = 1 %}";
    parameters += (i ? "," : "") + name;
    arguments += (i ? "," : "") + name + "=1";
  }
  const std::string loop = "{% for i in range(100000) %}";
  CHECK(fails_with(sets + loop + "{{ z }}{% endfor %}", "steps"));
  CHECK(fails_with(
      "{% macro f(" + parameters + ") %}{% endmacro %}" + loop + "{{ f(" + arguments + ") }}{% endfor %}",
      "steps"));
}

TEST_CASE("jinja limits: strings, lists and all that is made", "[jinja][limits]") {
  const std::string one = "a string of more than 16777216 bytes",
                    all = "values take more than 268435456 bytes";
  CHECK(fails_with("{{ 'x' * 10**9 }}", one));
  CHECK(fails_with("{{ 'x' * 9223372036854775807 }}", one));
  CHECK(fails_with("{{ ('x' * 10**6) * 10**6 }}", one));
  CHECK(fails_with("{{ [1] * 10**9 }}", ""));
  CHECK(fails_with("{{ [] * 10**18 }}x{{ 1 // 0 }}", "division by zero"));
  CHECK(fails_with("{{ range(10**12) }}", "a range of more than 100000 numbers"));
  CHECK(fails_with(
      "{% set ns = namespace(s='x') %}{% for i in range(100) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
      one));
  CHECK(fails_with(
      "{% set ns = namespace(l=[1]) %}{% for i in range(100) %}{% set ns.l = ns.l + ns.l %}{% endfor %}",
      ""));
  CHECK(fails_with("{% set s = 'x' * 10**6 %}{% for i in range(1000) %}{{ s }}{% endfor %}", one));
  CHECK(
      fails_with("{% set s = 'x' * 10**6 %}{% for i in range(1000) %}{% set t = s ~ i %}{% endfor %}", all));
  CHECK(fails_with("{{ ('x' * 10**5)|replace('x', 'y' * 10**5) }}", one));
  CHECK(fails_with("{{ ('x' * 10**5)|list|join('y' * 10**5) }}", one));
  CHECK(fails_with("{{ '%999999999999d' % 1 }}", one));
  CHECK(fails_with("{{ '%99999999999999999999999999d' % 1 }}", one));
  CHECK(fails_with("{{ '%*d' % (-9223372036854775807 - 1, 1) }}", one));
  CHECK(fails_with("{{ '%.999999999f' % 1 }}", ""));
  CHECK(fails_with("{{ '{:999999999}'.format(1) }}", one));
  CHECK(fails_with("{{ '{:.99999}'.format(1.5) }}", "precision"));
  CHECK(fails_with("{{ 'x'.center(10**18) }}", one));
  CHECK(fails_with("{{ 'x'.ljust(10**18) }}", one));
  CHECK(fails_with("{{ 'x'.zfill(10**18) }}", one));
  CHECK(fails_with("{{ 'x'|center(10**18) }}", one));
  CHECK(fails_with("{{ 'x\ny'|indent(10**18) }}", one));
  CHECK(fails_with("{{ [1]|tojson(indent=10**18) }}", one));
  CHECK(fails_with("{{ ('\t' * 100).expandtabs(10**9) }}", one));
  CHECK(fails_with("{{ [1]|batch(10**18, 0) }}", ""));
  CHECK(fails_with("{{ [1]|slice(10**18) }}", ""));
  CHECK(render("{{ 1.5|round(10**18) }}{{ 1.5|round(0 - 10**18) }}{{ 'ab'[10**18:] }}{{ 'ab'[::10**18] }}")
            .text == "1.50.0a");
  CHECK(render("{{ 'ab'[::-9223372036854775807 - 1] }}{{ [1, 2][-9223372036854775807 - 1:] }}").text ==
        "b[1, 2]");
  CHECK(render("{{ 'abc'.split('b', -9223372036854775807 - 1) }}").text == "['a', 'c']");
}

TEST_CASE("jinja limits: a small limit on what is written", "[jinja][limits]") {
  jinja::Limits small;
  small.n_bytes = 10;
  CHECK(render("{{ 'x' * 10 }}", Json::object(), Json::object(), small).text.size() == 10);
  CHECK(fails_with("{{ 'x' * 11 }}", "a string of more than 10 bytes (11 needed)", small));
  CHECK(fails_with("123456{{ 'x' * 5 }}", "a string of more than 10 bytes (11 needed)", small));
}

TEST_CASE("jinja limits: values that contain themselves", "[jinja][limits]") {
  const std::string self = "{% set l = [1] %}{% set _ = l.append(l) %}";
  CHECK(render(self + "{{ l }}").text == "[1, [...]]");
  CHECK(render(self + "{{ l == l }}{{ l|length }}").text == "True2");
  CHECK(fails_with(self + "{{ l|tojson }}", "circular reference"));
  const std::string two =
      "{% set a = [] %}{% set b = [] %}{% set _ = a.append(b) %}{% set _ = b.append(a) %}";
  CHECK(render(two + "{{ a }}").text == "[[[...]]]");
  CHECK(fails_with(two + "{{ a == b }}", "nested more than 100 deep"));
  CHECK(fails_with(two + "{{ a < b }}", "nested more than 100 deep"));
  CHECK(render("{% set d = {} %}{% set _ = d.update(d=d) %}{{ d }}").text == "{'d': {...}}");
  CHECK(render("{% set ns = namespace() %}{% set ns.x = ns %}{{ ns }}").text ==
        "<Namespace {'x': <Namespace {...}>}>");
  CHECK(render("{% set l = [1, 2] %}{% set _ = l.extend(l) %}{{ l }}").text == "[1, 2, 1, 2]");
  CHECK(render("{% set d = {'a': 1} %}{% set _ = d.update(d) %}{{ d }}").text == "{'a': 1}");
}

TEST_CASE("jinja limits: values made deep step by step", "[jinja][limits]") {
  const std::string list =
      "{% set ns = namespace(x=[]) %}{% for i in range(50000) %}{% set ns.x = [ns.x] %}{% endfor %}";
  const std::string tuple =
      "{% set ns = namespace(x=()) %}{% for i in range(50000) %}{% set ns.x = (ns.x,) %}{% endfor %}";
  const std::string deep = "nested more than 100 deep";
  for (const char* use :
       {"{{ ns.x }}", "{{ ns.x|tojson }}", "{{ ns.x == [ns.x] }}", "{{ ns.x in [[ns.x]] }}"}) {
    CHECK(fails_with(list + use, deep));
  }
  for (const char* use : {"{{ {ns.x: 1} }}", "{{ [ns.x, (ns.x,)]|unique }}", "{{ ns.x < (ns.x,) }}"}) {
    CHECK(fails_with(tuple + use, deep));
  }
  // Few objects, but a walk that would visit each by every way to it.
  const std::string wide =
      "{% set ns = namespace(a=[1], b=[1]) %}{% for i in range(60) %}{% set ns.a = [ns.a, ns.a] %}"
      "{% set ns.b = [ns.b, ns.b] %}{% endfor %}";
  CHECK(fails_with(wide + "{{ ns.a == ns.b }}", "steps"));
  CHECK(fails_with(wide + "{{ ns.a }}", ""));
  CHECK(fails_with(wide + "{{ ns.a|tojson }}", ""));
}

TEST_CASE("jinja limits: variables nested too deep are refused", "[jinja][limits]") {
  Json deep = 1;
  for (int i = 0; i < 500; ++i) deep = Json::array({std::move(deep)});
  CHECK(failure("{{ x }}", {}, {{"x", deep}}).find("variables nested more than 100 deep") !=
        std::string::npos);
  CHECK(failure("{{ y }}", {}, {{"x", deep}}).empty());  // what is not spoken of is not looked at
  CHECK(failure("{{ x }}", {}, {{"x", UINT64_MAX}}).find("beyond 64 bits") != std::string::npos);
}

TEST_CASE("jinja limits: bytes that are no UTF-8 pass through", "[jinja][limits]") {
  const Json input = {{"x", "a\xff\xc3\x28\x80 b\xf0\x9f"}};
  const std::string bytes = input["x"].get<std::string>();
  CHECK(render("\xfe{{ x }}\xc3", input).text == "\xfe" + bytes + "\xc3");
  for (const char* use : {"{{ x|upper }}", "{{ x[::-1] }}", "{{ x|title }}",
                          "{{ x|tojson(ensure_ascii=true) }}", "{{ x.split() }}", "{{ x|list }}",
                          "{{ x|wordcount }}", "{{ x.isalpha() }}", "{{ [x] }}", "{{ x.strip() }}"}) {
    INFO(use);
    CHECK(!render(use, input).text.empty());
  }
}

TEST_CASE("jinja limits: sorting what has no order stays within the list", "[jinja][limits]") {
  CHECK(render("{{ ([3, 'nan'|float, 1, 'nan'|float, 2] * 50)|sort|length }}").text == "250");
}

TEST_CASE("jinja limits: patterns that are slow to search for", "[jinja][limits]") {
  const auto begin = std::chrono::steady_clock::now();
  const std::string source = "{% set s = 'a' * 4000000 %}{% set n = 'a' * 100000 ~ 'b' %}";
  for (const char* use :
       {"{{ n in s }}", "{{ s.find(n) }}", "{{ s.rfind('b' ~ n) }}", "{{ s.split(n)|length }}",
        "{{ s.rsplit('b' ~ n)|length }}", "{{ s|replace(n, '')|length }}", "{{ s.count(n) }}"}) {
    INFO(use);
    CHECK(!render(source + use).text.empty());
  }
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(20));
}

TEST_CASE("jinja limits: work that grows with a value is paid for", "[jinja][limits]") {
  CHECK(!runs_out("[r, s, t, digits, zeros, names]"));
  CHECK(runs_out("zeros.remove(0)"));
  CHECK(runs_out("digits|int"));
  CHECK(runs_out("digits|float"));
  CHECK(runs_out("s.removeprefix('a')|length"));
  CHECK(runs_out("s.removesuffix('a')|length"));
  CHECK(runs_out("s.removesuffix(t)"));
  CHECK(runs_out("s.startswith('b')"));
  CHECK(runs_out("s.endswith('b', 1)"));
  CHECK(runs_out("s|truncate(200000)"));
  CHECK(runs_out("r.count('a')"));
  CHECK(runs_out("dict(**names)"));
  CHECK(runs_out("[r]|string"));
  jinja::Limits few;
  few.n_steps = 500;
  CHECK(fails_with("{% set l = [] %}{% set _ = l.append(l) %}{{ l|map(attribute='0' ~ '.0' * 1000)|length }}",
                   "more than 500 steps", few));
}

TEST_CASE("jinja limits: filters that apply filters do not recurse without end", "[jinja][limits]") {
  CHECK(fails_with("{{ 'a'|map(*(['map'] * 300000)) }}", "filters nested more than 100 deep"));
  CHECK(fails_with("{{ 'a'|map(*(['map'] * 300000 + ['select', 'odd'])) }}", "nested more than 100 deep"));
  CHECK(render("{{ ['ab']|map('map', 'upper')|first|first }}").text == "A");
  CHECK(render("{{ ['ab']|map('select', 'eq', 'b')|first|first }}").text == "b");
}

TEST_CASE("jinja limits: long names are cut in messages", "[jinja][limits]") {
  const std::string message = failure("{{ {}['x' * 100000].y }}");
  CHECK(message.find("has no attribute 'xxx") != std::string::npos);
  CHECK(message.size() < 200);
}

TEST_CASE("jinja limits: the size of a template", "[jinja][limits]") {
  constexpr size_t kMost = 1'048'576;
  CHECK(render(std::string(kMost, 'x')).text.size() == kMost);
  CHECK(fails_with(std::string(kMost + 1, 'x'), "a template of more than 1048576 bytes (1048577)"));
}

TEST_CASE("jinja limits: the smallest width is none", "[jinja][limits]") {
  const std::string least = "(-9223372036854775807 - 1)";
  for (const std::string& use : {"'x'.center(" + least + ")", "'x'|center(" + least + ")",
                                 "'x'.ljust(" + least + ")", "'x'.rjust(" + least + ")"}) {
    INFO(use);
    CHECK(render("{{ " + use + " }}").text == "x");
  }
}
