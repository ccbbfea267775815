#include "tests/cli/cli.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace minfer::test;

namespace {

struct Refused {
  std::vector<std::string> args;
  std::vector<std::string> said;  // what the line has to contain
};

void check_refused(const Refused& refused, int exit_code) {
  const Outcome outcome = run_cli(refused.args);
  INFO("minfer-cli " << Catch::Detail::stringify(refused.args) << " said: " << outcome.err);
  CHECK(outcome.exit_code == exit_code);
  CHECK(is_one_error_line(outcome));
  for (const std::string& text : refused.said) CHECK(outcome.err.find(text) != std::string::npos);
}

}  // namespace

TEST_CASE("usage: a bad flag or value is one line that names it, exit 2", "[cli]") {
  const std::vector<Refused> cases = {
      {{}, {"-m"}},
      {{"-m", kSmallModel}, {"-p", "-f"}},
      {{"-p", "x"}, {"-m"}},
      {{"--no-such-flag"}, {"--no-such-flag"}},
      {{"-m"}, {"--model"}},
      {{"-m", kSmallModel, "-p", "x", "-f", "y"}, {"--prompt", "--file"}},
      {{"-m", kSmallModel, "-p", "x", "-n", "12abc"}, {"-n", "12abc"}},
      {{"-m", kSmallModel, "-p", "x", "-n", "-2"}, {"-n", "-2"}},
      {{"-m", kSmallModel, "-p", "x", "-n", "99999999999"}, {"-n", "99999999999", "2147483647"}},
      {{"-m", kSmallModel, "-p", "x", "-n", ""}, {"-n"}},
      {{"-m", kSmallModel, "-p", "x", "-c", "1e3"}, {"-c", "1e3"}},
      {{"-m", kSmallModel, "-p", "x", "-t", "1025"}, {"-t", "1025", "1024"}},
      {{"-m", kSmallModel, "-p", "x", "--device", "tpu"}, {"--device", "tpu", "cpu"}},
      {{"-m", kSmallModel, "-p", "x", "--pretokenizer", "nonsense"}, {"nonsense", "qwen2"}},
      {{"-m", kSmallModel, "--tokenize", "--info", "-p", "x"}, {"--tokenize", "--info"}},
      {{"-m", kSmallModel, "-p", ""}, {"empty"}},
      {{"-m", kSmallModel, "-f", "/nonexistent/prompt"}, {"-f", "/nonexistent/prompt", "No such file"}},
      {{"-m", kSmallModel, "-f", "/tmp"}, {"-f", "/tmp", "directory"}},
  };
  for (const Refused& refused : cases) check_refused(refused, 2);
}

TEST_CASE("usage: an empty standard input is an empty prompt", "[cli]") {
  const Outcome outcome = run_cli({"-m", kSmallModel, "-p", "-"});
  CHECK(outcome.exit_code == 2);
  CHECK(is_one_error_line(outcome));
  CHECK(outcome.err.find("empty") != std::string::npos);
}

TEST_CASE("usage: a prompt longer than the context prints both numbers", "[cli]") {
  const Outcome outcome = run_cli({"-m", kSmallModel, "-p", "1 2 3 4 5 6 7 8 9", "-c", "4"});
  CHECK(outcome.exit_code == 2);
  const size_t last_line = outcome.err.rfind("error: ");
  REQUIRE(last_line != std::string::npos);
  const Outcome ids = run_cli({"-m", kSmallModel, "--tokenize", "-p", "1 2 3 4 5 6 7 8 9"});
  const auto n_ids = 1 + std::count(ids.out.begin(), ids.out.end(), ',');
  CHECK(outcome.err.find(std::to_string(n_ids) + " tokens", last_line) != std::string::npos);
  CHECK(outcome.err.find("context of 4", last_line) != std::string::npos);
}

TEST_CASE("usage: --help and --version answer on stdout, exit 0", "[cli]") {
  const Outcome help = run_cli({"--help"});
  CHECK(help.exit_code == 0);
  CHECK(help.err.empty());
  for (const char* flag : {"-m", "-p", "-f", "-n", "-c", "--device", "-t", "-q", "-v", "--ignore-eos",
                           "--tokenize", "--info", "--version", "--pretokenizer", "--parse-special", "130"}) {
    INFO(flag);
    CHECK(help.out.find(flag) != std::string::npos);
  }
  const Outcome version = run_cli({"--version"});
  CHECK(version.exit_code == 0);
  CHECK(version.out.starts_with("minfer "));
  CHECK(version.err.empty());
}

TEST_CASE("usage: a value may look like a flag", "[cli]") {
  const Outcome outcome = run_cli({"-m", kSmallModel, "--tokenize", "-p", "-n"});
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.out.starts_with("["));
}

TEST_CASE("model file: what cannot be a model is one line that names it, exit 3", "[cli]") {
  const TempDir dir;
  const std::string empty = dir.write("empty.gguf", std::string());
  const std::string pointer =
      dir.write("pointer.gguf", std::string("version https://git-lfs.github.com/spec/v1\noid sha256:0\n"));
  const std::string page = dir.write("page.gguf", std::string("<!DOCTYPE html><html></html>"));
  const std::string noise = dir.write("noise.gguf", std::string(1000, 'x'));
  const std::vector<Refused> cases = {
      {{"-m", "/nonexistent/model.gguf", "-p", "x"}, {"/nonexistent/model.gguf", "No such file"}},
      {{"-m", "/tmp", "-p", "x"}, {"/tmp", "directory"}},
      {{"-m", empty, "-p", "x"}, {empty, "empty"}},
      {{"-m", pointer, "-p", "x"}, {pointer, "LFS"}},
      {{"-m", page, "--info"}, {page, "HTML"}},
      {{"-m", noise, "--tokenize", "-p", "x"}, {noise}},
  };
  for (const Refused& refused : cases) check_refused(refused, 3);
}

TEST_CASE("device: --device cuda never runs on the CPU", "[cli]") {
  const Outcome outcome = run_cli({"-m", "/nonexistent/model.gguf", "-p", "x", "--device", "cuda"});
  CHECK(outcome.exit_code == 4);  // said before the file is looked at
  CHECK(is_one_error_line(outcome));
  CHECK(outcome.err.find("--device cuda: ") != std::string::npos);
}

TEST_CASE("device: auto says what it chose", "[cli]") {
  const Outcome outcome = run_cli({"-m", kSmallModel, "-p", "x", "-n", "1"});
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.err.find("device: cpu") != std::string::npos);
  CHECK(outcome.err.find("auto") != std::string::npos);
}
