#include <fstream>
#include <regex>
#include <set>
#include <sstream>

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

// Flags among the words of a text: -p, -sys, --top-k.
void collect_flags(const std::string& text, std::set<std::string>& into) {
  static const std::regex flag(R"((^|[\s,|(\[])(--[a-z][a-z0-9-]*|-sys|-[a-z])(?![A-Za-z0-9_-]))");
  for (std::sregex_iterator match(text.begin(), text.end(), flag), end; match != end; ++match) {
    into.insert((*match)[2].str());
  }
}

// What stands before the help's text, in the lines that declare a flag.
std::set<std::string> flags_in_help() {
  std::set<std::string> flags;
  std::istringstream lines(run_cli({"--help"}).out);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("  -")) continue;
    collect_flags(line.substr(2, line.find("  ", 2) - 2), flags);
  }
  return flags;
}

// In code that is about minfer-cli: a span that begins with a flag, and whatever names the program.
std::set<std::string> flags_in_readme() {
  std::ifstream in(MINFER_SOURCE_DIR "/README.md");
  std::set<std::string> flags;
  bool in_block = false;
  static const std::regex span("`([^`]+)`");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("```")) {
      in_block = !in_block;
    } else if (in_block && line.find("minfer-cli") != std::string::npos) {
      collect_flags(line.substr(line.find("minfer-cli")), flags);
    } else if (!in_block) {
      for (std::sregex_iterator match(line.begin(), line.end(), span), end; match != end; ++match) {
        const std::string code = (*match)[1];
        if (code.starts_with('-') || code.find("minfer-cli") != std::string::npos) collect_flags(code, flags);
      }
    }
  }
  return flags;
}

// The long name of a flag that README names by its short one.
bool is_other_name(const std::string& flag) {
  static const std::set<std::string> others = {
      "--prompt",        "--file",  "--escape",  "--n-predict", "--ctx-size", "--threads", "--model",
      "--system-prompt", "--quiet", "--verbose", "--help",      "-h",         "-e"};
  return others.count(flag) == 1;
}

}  // namespace

TEST_CASE("usage: a bad flag or value is one line that names it, exit 2", "[cli]") {
  const std::vector<Refused> cases = {
      {{}, {"-m"}},
      {{"-m", kSmallModel}, {"-p", "-f"}},
      {{"-p", "x"}, {"-m"}},
      {{"--no-such-flag"}, {"--no-such-flag"}},
      {{"-m"}, {"-m", "FILE"}},
      {{"--tempp", "1"}, {"--tempp: unknown flag; did you mean --temp?"}},
      {{"--temperature", "1"}, {"did you mean --temp?"}},
      {{"-temp", "1"}, {"-temp: unknown flag; did you mean --temp?"}},
      {{"--top_k", "1"}, {"did you mean --top-k?"}},
      {{"-ngl", "99"}, {"-ngl: unknown flag (--help"}},
      {{"--xyzzyplugh"}, {"--xyzzyplugh: unknown flag (--help"}},
      {{"-m", kSmallModel, "-p", "x", "y"}, {"'y'", "not a flag"}},
      {{"-m", kSmallModel, "-p", "x", "--"}, {"'--'"}},
      {{"-m", kSmallModel, "-p", "x", "--json=1"}, {"--json", "no value", "1"}},
      {{"-m", kSmallModel, "-p", "x", "-f", "y"}, {"--prompt", "--file"}},
      {{"-m", kSmallModel, "-p", "x", "-n", "12abc"}, {"-n", "12abc"}},
      {{"-m", kSmallModel, "-p", "x", "-n", "-2"}, {"-n", "-2"}},
      {{"-m", kSmallModel, "-p", "x", "-n", "99999999999"}, {"-n", "99999999999", "2147483647"}},
      {{"-m", kSmallModel, "-p", "x", "-n", ""}, {"-n"}},
      {{"-m", kSmallModel, "-p", "x", "-c", "1e3"}, {"-c", "1e3"}},
      {{"-m", kSmallModel, "-p", "x", "-t", "1025"}, {"-t", "1025", "1024"}},
      {{"-m", kSmallModel, "-p", "x", "--temp", "-0.5"}, {"--temp", "-0.5", "0 to 1000"}},
      {{"-m", kSmallModel, "-p", "x", "--temp", "0,5"}, {"--temp", "0,5"}},
      {{"-m", kSmallModel, "-p", "x", "--temp", "nan"}, {"--temp", "nan"}},
      {{"-m", kSmallModel, "-p", "x", "--top-k", "-1"}, {"--top-k", "-1", "0 to 2147483647"}},
      {{"-m", kSmallModel, "-p", "x", "--top-p", "1.5"}, {"--top-p", "1.5", "0 to 1"}},
      {{"-m", kSmallModel, "-p", "x", "--min-p", "x"}, {"--min-p", "'x'", "0 to 1"}},
      {{"-m", kSmallModel, "-p", "x", "--repeat-penalty", "0"}, {"--repeat-penalty", "0.001 to 1000"}},
      {{"-m", kSmallModel, "-p", "x", "--repeat-last-n", "-2"}, {"--repeat-last-n", "-1 to"}},
      {{"-m", kSmallModel, "-p", "x", "--presence-penalty", "1e9"}, {"--presence-penalty", "-1000 to 1000"}},
      {{"-m", kSmallModel, "-p", "x", "--frequency-penalty", ""}, {"--frequency-penalty", "''"}},
      {{"-m", kSmallModel, "-p", "x", "--seed", "-1"}, {"--seed", "18446744073709551615"}},
      {{"-m", kSmallModel, "-p", "x", "--seed", "18446744073709551616"}, {"--seed"}},
      {{"-m", kSmallModel, "-p", "x", "--logit-bias", "5"}, {"--logit-bias", "'5'", "ID+BIAS"}},
      {{"-m", kSmallModel, "-p", "x", "--json", "--logprobs", "1001"}, {"--logprobs", "0 to 1000"}},
      {{"-m", kSmallModel, "-p", "x", "--logprobs", "2"}, {"--logprobs", "--json"}},
      {{"-m", kSmallModel, "-p", "x", "--stop", ""}, {"--stop", "empty"}},
      {{"-m", kSmallModel, "-p", "x", "--stop="}, {"--stop", "empty"}},
      {{"-m", kSmallModel, "--batch", "x", "--parallel", "0"}, {"--parallel", "auto", "1 to 1024"}},
      {{"-m", kSmallModel, "--batch", "x", "--resume"}, {"--resume", "--output"}},
      {{"-m", kSmallModel, "--batch", "x", "--batch-null", "--batch-delimiter", "y"}, {"--batch-null"}},
      {{"-m", kSmallModel, "-p", "x", "--resume"}, {"--resume", "--batch"}},
      {{"-m", kSmallModel, "-p", "x", "--trim-newline"}, {"--trim-newline", "-f"}},
      {{"-m", kSmallModel, "-f", "x", "--escape"}, {"--escape", "-p"}},
      {{"-m", kSmallModel, "-p", "x", "-sys", "y"}, {"--system-prompt", "--chat"}},
      {{"-m", kSmallModel, "-p", "x", "-q", "-v"}, {"--quiet", "--verbose"}},
      {{"-m", kSmallModel, "--bench", "--temp", "1"}, {"--temp"}},
      {{"-m", kSmallModel, "--bench", "-n", "64"}, {"-n", "completions"}},
      {{"-m", kSmallModel, "--bench", "--chat"}, {"--chat", "completions"}},
      {{"-m", kSmallModel, "--chat", "-p", "x", "--parse-special"}, {"--parse-special", "raw"}},
      {{"-m", kSmallModel, "--chat", "-p", "-", "--system-file", "-"}, {"-p -", "--system-file -", "once"}},
      {{"-m", kSmallModel, "--batch", "-", "--chat-template", "-"}, {"--batch -", "--chat-template -"}},
      {{"-m", ""}, {"-m", "empty"}},
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
  for (const char* code : {"0 done", "1 ", "2 usage", "3 model file", "4 device", "130 interrupted"}) {
    INFO(code);
    CHECK(help.out.find(code) != std::string::npos);
  }
  CHECK(run_cli({"-h"}).out == help.out);
  CHECK(run_cli({"--temp", "bad", "--help"}).out == help.out);
  const Outcome version = run_cli({"--version"});
  CHECK(version.exit_code == 0);
  CHECK(version.out.starts_with("minfer "));
  CHECK(version.err.empty());
}

TEST_CASE("usage: every group of --help fits a screen of 80 by 24", "[cli]") {
  std::istringstream lines(run_cli({"--help"}).out);
  int n_groups = 0, n_lines = 0;
  for (std::string line; std::getline(lines, line);) {
    INFO(line);
    CHECK(line.size() <= 80);
    n_groups += line.ends_with(':') && !line.starts_with(' ');
    n_lines = line.empty() ? 0 : n_lines + 1;
    CHECK(n_lines <= 24);
  }
  CHECK(n_groups >= 8);
}

TEST_CASE("usage: every flag in README exists in --help, and the other way round", "[cli]") {
  const std::set<std::string> known = flags_in_help(), told = flags_in_readme();
  CHECK(known.size() > 40);
  std::set<std::string> unknown, untold;
  std::set_difference(told.begin(), told.end(), known.begin(), known.end(),
                      std::inserter(unknown, unknown.end()));
  std::set_difference(known.begin(), known.end(), told.begin(), told.end(),
                      std::inserter(untold, untold.end()));
  std::erase_if(untold, is_other_name);
  CHECK(unknown == std::set<std::string>());
  CHECK(untold == std::set<std::string>());
}

TEST_CASE("usage: of a flag given twice the last one counts, of --stop all", "[cli]") {
  const auto run = [](std::vector<std::string> more) {
    std::vector<std::string> args = {"-m", kSmallModel, "-p", "x", "--ignore-eos", "-q"};
    args.insert(args.end(), more.begin(), more.end());
    return run_cli(args);
  };
  CHECK(run({"-n", "x", "-n", "3"}).out == run({"-n", "3"}).out);
  const std::string whole = run({"-n", "12"}).out;
  REQUIRE(whole.size() > 6);
  const std::string early = whole.substr(2, 1), late = whole.substr(4, 1);
  const std::string both = run({"-n", "12", "--stop", late, "--stop", early}).out;
  CHECK(both == whole.substr(0, std::min(whole.find(early), whole.find(late))));
}

TEST_CASE("usage: a value may look like a flag, and be joined to its flag", "[cli]") {
  const auto ids = [](std::vector<std::string> args) {
    args.insert(args.begin(), {"-m", kSmallModel, "--tokenize"});
    const Outcome outcome = run_cli(args);
    INFO(outcome.err);
    CHECK(outcome.exit_code == 0);
    return outcome.out;
  };
  CHECK(ids({"-p", "-n"}) == ids({"--prompt=-n"}));
  CHECK(ids({"-p", "-sys"}) == ids({"--prompt=-sys"}));  // no alias where a value is due
  CHECK(ids({"-p", "--"}) == ids({"--prompt=--"}));
  CHECK(ids({"-p", "[a,b]"}) == ids({"-p[a,b]"}));
  CHECK(ids({"-p", "{}"}) != ids({"-p", "[]"}));
  CHECK(ids({"-qp", "a=b"}) == ids({"--prompt=a=b"}));
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
