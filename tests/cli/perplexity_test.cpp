#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/perplexity.h"
#include "core/reference/reference_engine.h"
#include "tests/cli/cli.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace minfer;
using namespace minfer::test;

namespace {

std::string some_text() {
  std::string text;
  for (int i = 0; i < 12; ++i)
    text += "The quick brown fox jumps over " + std::to_string(i) + " lazy dogs.\n";
  return text;
}

std::vector<std::string> args(const std::string& path, std::vector<std::string> more = {}) {
  std::vector<std::string> all{"-m", kSmallModel, "--perplexity", path, "-c", "32", "--device", "cpu"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

// The same, computed in this process.
std::vector<PerplexityWindow> expected_windows(const std::string& text) {
  const auto file = gguf::Reader::open(kSmallModel);
  const auto tokenizer = Tokenizer::from_metadata(file.metadata());
  const auto engine = make_reference_engine(file, {.n_vocab_used = tokenizer->n_vocab()});
  std::vector<PerplexityWindow> windows;
  perplexity(*engine, *tokenizer, tokenizer->encode(text), 32,
             [&](const PerplexityWindow& w) { windows.push_back(w); });
  return windows;
}

}  // namespace

TEST_CASE("perplexity: --json prints one object a window and one of the whole", "[cli][perplexity]") {
  const TempDir dir;
  write_file(dir.path("text"), some_text());
  const Outcome outcome = run_cli(args(dir.path("text"), {"--json", "-q"}));
  REQUIRE(outcome.exit_code == 0);
  CHECK(outcome.err.empty());
  std::vector<nlohmann::json> lines;
  std::istringstream in(outcome.out);
  for (std::string line; std::getline(in, line);) lines.push_back(nlohmann::json::parse(line));
  const auto expected = expected_windows(some_text());
  REQUIRE(expected.size() >= 3);
  REQUIRE(lines.size() == expected.size() + 1);
  for (size_t w = 0; w < expected.size(); ++w) {
    CHECK(lines[w]["window"] == w + 1);
    CHECK(lines[w]["windows"] == expected.size());
    CHECK(lines[w]["scored"] == 15 * (w + 1));
    CHECK(lines[w]["perplexity"].get<double>() == Approx(expected[w].perplexity).epsilon(1e-6));
    CHECK(lines[w]["uncertainty"].get<double>() == Approx(expected[w].uncertainty).epsilon(1e-6));
  }
  const auto& whole = lines.back();
  CHECK(whole["perplexity"] == lines[expected.size() - 1]["perplexity"]);
  CHECK(whole["n_ctx"] == 32);
  CHECK(whole["model"] == kSmallModel);
  CHECK(whole["text"] == dir.path("text"));
  CHECK(whole["timings"]["forward_tokens"] == 31 * expected.size());
  CHECK(whole["timings"]["forward_tokens_per_s"].get<double>() > 0);
  CHECK(whole["timings"]["load_s"].get<double>() + whole["timings"]["forward_s"].get<double>() <=
        whole["timings"]["total_s"].get<double>());
  CHECK(whole["timings"]["peak_memory_bytes"].get<double>() > 1e6);
}

TEST_CASE("perplexity: the table ends with the result; the timings are on stderr", "[cli][perplexity]") {
  const TempDir dir;
  write_file(dir.path("text"), some_text());
  const Outcome outcome = run_cli(args(dir.path("text")));
  REQUIRE(outcome.exit_code == 0);
  const auto expected = expected_windows(some_text());
  char last[64];
  std::snprintf(last, sizeof last, "\nperplexity %.4f +/- ", expected.back().perplexity);
  for (const std::string& part : {std::string(last), std::string("windows of 32"), std::string("+/-")}) {
    INFO(part << " in\n" << outcome.out);
    CHECK(outcome.out.find(part) != std::string::npos);
  }
  for (const char* part : {"load", "forward", "tokens/s", "total", "peak memory"}) {
    INFO(part << " in\n" << outcome.err);
    CHECK(outcome.err.find(part) != std::string::npos);
  }
}

TEST_CASE("perplexity: of standard input is that of the same file", "[cli][perplexity]") {
  const TempDir dir;
  write_file(dir.path("text"), some_text());
  const Outcome by_file = run_cli(args(dir.path("text"), {"-q"}));
  Run run = cli(args("-", {"-q"}));
  run.input = some_text();
  const Outcome by_pipe = run_process(run);
  CHECK(by_file.exit_code == 0);
  CHECK(by_pipe.exit_code == 0);
  const auto windows = [](const std::string& out) {
    return out.substr(std::min(out.find("window "), out.size()));
  };
  CHECK_FALSE(windows(by_file.out).empty());
  CHECK(windows(by_pipe.out) == windows(by_file.out));
}

TEST_CASE("perplexity: Ctrl-C ends it with 130 behind whole lines", "[cli][perplexity]") {
  const TempDir dir;
  std::string text;
  for (int i = 0; i < 50; ++i) text += some_text();
  write_file(dir.path("text"), text);
  Run run = cli(args(dir.path("text"), {"--json", "-q"}));
  run.interrupt_after = 1;
  const Outcome outcome = run_process(run);
  CHECK(outcome.exit_code == 130);
  CHECK(outcome.seconds_after_event < 1);
  CHECK(outcome.out.ends_with("}\n"));
  CHECK(outcome.out.find("\"n_ctx\"") == std::string::npos);  // the last object is not there
}

TEST_CASE("perplexity: a text that is too short, absent or a folder is one line, exit 2",
          "[cli][perplexity]") {
  const TempDir dir;
  write_file(dir.path("short"), "Hello.");
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {args(dir.path("short")), "two windows of 32 need 64"},
      {{"-m", kSmallModel, "--perplexity", dir.path("short"), "-q"}, "two windows of 512 need 1024"},
      {args(dir.path("absent")), "--perplexity " + dir.path("absent")},
      {args(dir.path("")), "--perplexity "},
      {args(dir.path("short"), {"-p", "x"}), "-p"},
  };
  for (const auto& [arguments, said] : cases) {
    const Outcome outcome = run_cli(arguments);
    INFO(said << " in " << outcome.err);
    CHECK(outcome.exit_code == 2);
    CHECK(is_one_error_line(outcome));
    CHECK(outcome.err.find(said) != std::string::npos);
  }
}
