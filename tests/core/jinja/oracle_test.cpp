// Real models' templates against Jinja2's own renderings.
#include <nlohmann/json.hpp>

#include "core/jinja/template.h"
#include "tests/core/jinja/rendering.h"
#include "tests/support/catch.h"
#include "tests/support/oracle.h"

using namespace minfer;
using namespace minfer::test;

namespace {

std::string text_or_error(const jinja::Template& chat_template, const Json& file, const Json& test_case) {
  Json variables = {{"bos_token", file["bos_token"]}, {"eos_token", file["eos_token"]}};
  variables["add_generation_prompt"] = test_case["add_generation_prompt"];
  const Json input = {{"messages", test_case["messages"]}};
  try {
    return chat_template.render(input, variables, parse_time(file["now"])).text;
  } catch (const jinja::Error& error) {
    REQUIRE(error.raised());
    return std::string("error: ") + error.what();
  }
}

}  // namespace

TEST_CASE("jinja: every case of the template oracle, character for character", "[jinja][oracle][templates]") {
  const auto files = oracle_files("templates", ".json");
  if (files.empty()) MINFER_SKIP("no oracle/templates");
  for (const auto& path : files) {
    const Json file = Json::parse(read_file(path));
    const jinja::Template chat_template(file["template"].get<std::string>());
    REQUIRE(!file["cases"].empty());
    for (const Json& test_case : file["cases"]) {
      INFO(path.filename().string() << ": " << test_case["messages"].dump());
      const bool raises = test_case.contains("error");
      const auto expected = test_case[raises ? "error" : "text"].get<std::string>();
      CHECK(text_or_error(chat_template, file, test_case) == (raises ? "error: " : "") + expected);
    }
  }
}
