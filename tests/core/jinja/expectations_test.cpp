// Small templates, one corner of the language each, against Jinja2's own renderings of them
// (tests/data/jinja/generate.py).
#include <nlohmann/json.hpp>

#include "core/jinja/template.h"
#include "tests/core/jinja/rendering.h"
#include "tests/support/catch.h"
#include "tests/support/oracle.h"

using namespace minfer;
using namespace minfer::test;

TEST_CASE("jinja: expressions and statements give what Jinja2 gives", "[jinja]") {
  const Json file = Json::parse(read_file(MINFER_SOURCE_DIR "/tests/data/jinja/expectations.json"));
  const std::tm now = parse_time(file["now"]);
  REQUIRE(file["cases"].size() > 1000);
  for (const Json& test_case : file["cases"]) {
    const auto source = test_case["template"].get<std::string>();
    INFO(source);
    try {
      const auto rendered = jinja::Template(source).render(Json::object(), file["variables"], now);
      CHECK(rendered.text == test_case.value("text", "an error: " + test_case.value("error", "")));
      CHECK(rendered.input.empty());
    } catch (const jinja::Error& error) {
      INFO(error.what());
      REQUIRE(!test_case.contains("text"));
      // Messages are our own but for the template's.
      CHECK(error.raised() == test_case["raised"].get<bool>());
      if (error.raised()) CHECK(error.what() == test_case["error"].get<std::string>());
      CHECK(error.line() >= 1);
      CHECK(error.column() >= 1);
    }
  }
}

TEST_CASE("jinja: the users' variables give the same text as the others", "[jinja]") {
  const Json file = Json::parse(read_file(MINFER_SOURCE_DIR "/tests/data/jinja/expectations.json"));
  const std::tm now = parse_time(file["now"]);
  for (const Json& test_case : file["cases"]) {
    if (!test_case.contains("text")) continue;
    const auto source = test_case["template"].get<std::string>();
    INFO(source);
    const auto rendered = jinja::Template(source).render(file["variables"], Json::object(), now);
    CHECK(rendered.text == test_case["text"].get<std::string>());
    marked(rendered);  // ranges in order and within the text
  }
}
