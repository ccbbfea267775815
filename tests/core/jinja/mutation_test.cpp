// Damaged templates of real models: an error or a text within limits, each in bounded time.
#include <chrono>
#include <random>

#include "tests/core/jinja/rendering.h"
#include "tests/support/oracle.h"

using namespace minfer;
using namespace minfer::test;

namespace {

constexpr int kMutations = 1000;

// Damage of the kinds that keep most of a template whole, so that the evaluator gets its share.
class TemplateMutator {
 public:
  explicit TemplateMutator(uint64_t seed) : random_(seed) {}

  std::string mutate(std::string source) {
    const size_t n_damages = 1 + below(4);
    for (size_t i = 0; i < n_damages; ++i) damage(source);
    return source;
  }

 private:
  size_t below(size_t n) { return n == 0 ? 0 : random_() % n; }

  std::string fragment() {
    static const char* const kFragments[] = {
        "{%",
        "%}",
        "{{",
        "}}",
        "{#",
        "#}",
        "-",
        "+",
        "|",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ".",
        ",",
        ":",
        "=",
        "~",
        "*",
        "**",
        "//",
        "%",
        "not ",
        " in ",
        " is ",
        " and ",
        " or ",
        " if ",
        " else ",
        "{% endif %}",
        "{% endfor %}",
        "{% else %}",
        "{% for x in messages %}",
        "{% if x %}",
        "{% set x = messages %}",
        "{% break %}",
        "{% macro f(x) %}",
        "{% endmacro %}",
        "{{ loop }}",
        "messages",
        "loop",
        "none",
        "namespace",
        "caller()",
        "|tojson",
        "|list",
        "|length",
        "|join",
        "|map",
        "|first",
        ".split('a')",
        ".strip()",
        ".items()",
        "[::-1]",
        "[1:]",
        "[0]",
        "10**9",
        "* 1000000",
        "'",
        "\"",
        "\\",
        "\n",
        "\xff",
        "\xf0\x9f\xa6\x99",
        "range(99999)",
        "raise_exception('x')",
        "-9223372036854775808",
        "1e308",
        "'%999d' % 1",
        "{% raw %}",
        "{% endraw %}",
        "{% generation %}",
        "{% endgeneration %}",
        "{% filter upper %}",
        "{% endfilter %}",
    };
    return kFragments[below(std::size(kFragments))];
  }

  void damage(std::string& source) {
    const size_t at = below(source.size() + 1), n = below(std::min<size_t>(source.size() - at, 60) + 1);
    switch (below(6)) {
      case 0:
        source.erase(at, n);
        break;
      case 1:
        source.insert(at, fragment());
        break;
      case 2:
        source.replace(at, n / 8, fragment());
        break;
      case 3:
        source.insert(below(source.size() + 1), source.substr(at, n));
        break;
      case 4:
        if (at < source.size()) source[at] = static_cast<char>(random_());
        break;
      default: {
        // Two names or numbers change places.
        const size_t other = below(source.size());
        if (at < source.size()) std::swap(source[at], source[other]);
      }
    }
  }

  std::mt19937_64 random_;
};

}  // namespace

TEST_CASE("jinja: 1000 damaged copies of each template", "[jinja][oracle][templates][mutation]") {
  const auto files = oracle_files("templates", ".json");
  if (files.empty()) MINFER_SKIP("no oracle/templates");
  jinja::Limits limits;
  limits.n_steps = 100'000;
  limits.n_bytes = size_t{1} << 20;
  limits.n_total_bytes = size_t{16} << 20;
  size_t n_rendered = 0, n_failed = 0;
  std::chrono::steady_clock::duration longest{};
  for (size_t f = 0; f < files.size(); ++f) {
    const Json file = Json::parse(read_file(files[f]));
    const auto source = file["template"].get<std::string>();
    const std::tm now = parse_time(file["now"]);
    for (int i = 0; i < kMutations; ++i) {
      const std::string damaged = TemplateMutator(f * kMutations + static_cast<size_t>(i)).mutate(source);
      const Json& test_case = file["cases"][static_cast<size_t>(i) % file["cases"].size()];
      const Json variables = {{"bos_token", file["bos_token"]},
                              {"eos_token", file["eos_token"]},
                              {"add_generation_prompt", test_case["add_generation_prompt"]}};
      const auto begin = std::chrono::steady_clock::now();
      try {
        const auto rendered =
            jinja::Template(damaged).render({{"messages", test_case["messages"]}}, variables, now, limits);
        if (rendered.text.size() > limits.n_bytes)
          FAIL("a text of " << rendered.text.size() << " bytes: " << damaged);
        size_t at = 0;
        for (const ByteRange& range : rendered.input) {
          if (range.begin < at || range.end <= range.begin || range.end > rendered.text.size()) FAIL(damaged);
          at = range.end;
        }
        ++n_rendered;
      } catch (const jinja::Error& error) {
        if (error.line() < 1 || error.column() < 1 || error.message().empty()) {
          if (!error.raised()) FAIL("an error without its place: " << error.what() << ": " << damaged);
        }
        ++n_failed;
      }
      longest = std::max(longest, std::chrono::steady_clock::now() - begin);
    }
  }
  INFO(n_rendered << " rendered, " << n_failed << " failed");
  // Both ways must be taken often, or the damage is not what it should be.
  CHECK(n_rendered > files.size() * kMutations / 10);
  CHECK(n_failed > files.size() * kMutations / 10);
  CHECK(longest < std::chrono::seconds(10));
}
