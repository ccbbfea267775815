#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cli/cli.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace minfer::test;

namespace {

std::vector<nlohmann::json> json_lines(const std::string& text) {
  std::vector<nlohmann::json> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

std::vector<std::string> bench_args(std::vector<std::string> more = {}) {
  std::vector<std::string> args{
      "--bench",        "-m", kSmallModel,           "--device", "cpu", "--bench-prefill", "16,33",
      "--bench-decode", "5",  "--bench-repetitions", "3"};
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

// An interpreter or shell by name, as the shell finds it.
Outcome run_script(const std::string& command) {
  Run run;
  run.args = {"/bin/sh", "-c", command};
  return run_process(run);
}

std::string quoted(const std::string& path) {
  std::string out = path;
  out.insert(0, 1, '\'');
  out.push_back('\'');
  return out;
}
const std::string kScripts = MINFER_SOURCE_DIR "/scripts/";

}  // namespace

TEST_CASE("bench: --json prints one object a measurement", "[cli][bench]") {
  const Outcome outcome = run_cli(bench_args({"--json", "--bench-depth", "4"}));
  REQUIRE(outcome.exit_code == 0);
  const auto lines = json_lines(outcome.out);
  REQUIRE(lines.size() == 3);
  CHECK(lines[0]["test"] == "prefill");
  CHECK(lines[0]["tokens"] == 16);
  CHECK(lines[1]["tokens"] == 33);
  CHECK(lines[2]["test"] == "decode");
  CHECK(lines[2]["tokens"] == 5);
  for (const auto& line : lines) {
    CHECK(line["sequences"] == 1);
    CHECK(line["depth"] == 4);
    CHECK(line["repetitions"] == 3);
    CHECK(line["seconds_min"].get<double>() > 0);
    CHECK(line["seconds_min"] <= line["seconds"]);
    CHECK(line["seconds"] <= line["seconds_max"]);
    CHECK(line["tokens_per_second"].get<double>() ==
          Approx(line["tokens"].get<double>() / line["seconds"].get<double>()));
    CHECK(line["flops"].get<double>() > 0);
    CHECK(line["bytes"].get<double>() > 0);
    CHECK(line["of_ceiling"].is_null());  // the CPU's is not known
    CHECK(line["device"].get<std::string>().starts_with("cpu"));
    CHECK(line["model"] == kSmallModel);
  }
}

TEST_CASE("bench: --bench-batch decodes so many sequences, and tokens/s is of all of them", "[cli][bench]") {
  const Outcome outcome = run_cli(bench_args({"--json", "--bench-batch", "1,3", "--bench-depth", "20"}));
  REQUIRE(outcome.exit_code == 0);
  const auto lines = json_lines(outcome.out);
  REQUIRE(lines.size() == 4);
  CHECK(lines[0]["test"] == "prefill");
  CHECK(lines[1]["sequences"] == 1);  // prompts are timed one by one
  CHECK(lines[2]["sequences"] == 1);
  CHECK(lines[3]["sequences"] == 3);
  CHECK(lines[3]["test"] == "decode");
  CHECK(lines[3]["tokens"] == 5);  // of each
  CHECK(lines[3]["tokens_per_second"].get<double>() == Approx(3 * 5 / lines[3]["seconds"].get<double>()));
  // Weights are read once a step, so three sequences cost less than three times the bytes of one.
  CHECK(lines[3]["bytes"] < 2 * lines[2]["bytes"].get<double>());
  CHECK(lines[3]["flops"].get<double>() == Approx(3 * lines[2]["flops"].get<double>()));
  const Outcome table = run_cli(bench_args({"-q", "--bench-batch", "3", "--bench-prefill", "0"}));
  CHECK(table.out.find("sequences") != std::string::npos);
  CHECK(table.out.find("\ndecode         5         3       0     3 ") != std::string::npos);
}

TEST_CASE("bench: the table says what is inside the clock", "[cli][bench]") {
  const Outcome outcome = run_cli(bench_args({"-q"}));
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.err.empty());
  for (const char* part :
       {"clock", "outside", "prefill", "decode", "tokens/s", "min .. max", "cpu", "n/a", "    33 "}) {
    INFO(part << " in\n" << outcome.out);
    CHECK(outcome.out.find(part) != std::string::npos);
  }
}

TEST_CASE("bench: a wrong list or a flag of another mode is one line, exit 2", "[cli][bench]") {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"--bench", "-m", kSmallModel, "--bench-prefill", "12,"}, "--bench-prefill"},
      {{"--bench", "-m", kSmallModel, "--bench-prefill", "0,5"}, "--bench-prefill"},
      {{"--bench", "-m", kSmallModel, "--bench-decode", "-1"}, "--bench-decode"},
      {{"--bench", "-m", kSmallModel, "--bench-repetitions", "0"}, "--bench-repetitions"},
      {{"--bench", "-m", kSmallModel, "--bench-batch", "2000"}, "--bench-batch"},
      {{"--bench", "-m", kSmallModel, "--bench-batch", "0"}, "--bench-batch 0"},
      {{"--bench", "-m", kSmallModel, "--bench-prefill", "2147483647", "--bench-depth", "9"}, "2147483656"},
      {{"--bench", "-m", kSmallModel, "--bench-prefill", "0", "--bench-decode", "0"}, "nothing to measure"},
      {{"-m", kSmallModel, "-p", "x", "--bench-depth", "3"}, "--bench-depth: belongs to --bench"},
      {{"--tokenize", "-m", kSmallModel, "-p", "x", "--json"}, "--json: belongs to"},
      {{"-m", kSmallModel, "--bench", "--profile"}, "--bench and --profile"},
      {{"-m", kSmallModel, "-p", "x", "--verify", "-n", "-1"}, "-n -1"},
      {{"-m", kSmallModel, "--verify"}, "no prompt"},
      {{"-m", kSmallModel, "-p", "x", "--f16-cache", "maybe"}, "auto, on, off"},
  };
  for (const auto& [args, said] : cases) {
    const Outcome outcome = run_cli(args);
    INFO(said << " in " << outcome.err);
    CHECK(outcome.exit_code == 2);
    CHECK(is_one_error_line(outcome));
    CHECK(outcome.err.find(said) != std::string::npos);
  }
}

TEST_CASE("profile, verify: on the CPU there is nothing to measure or compare, exit 2", "[cli]") {
  const std::string absent = "/nonexistent/model.gguf";
  for (const auto& args :
       {std::vector<std::string>{"--profile", "-m", absent, "--device", "cpu"},
        std::vector<std::string>{"--verify", "-m", absent, "-p", "x", "--device", "cpu"}}) {
    const Outcome outcome = run_cli(args);
    INFO(outcome.err);
    CHECK(outcome.exit_code == 2);  // said before the file is looked at
    CHECK(is_one_error_line(outcome));
    CHECK(outcome.err.find(args.front()) != std::string::npos);
    CHECK(outcome.err.find("CPU") != std::string::npos);
  }
}

TEST_CASE("device: --f16-cache on the CPU says that it does nothing", "[cli]") {
  const Outcome outcome =
      run_cli({"-m", kSmallModel, "-p", "x", "-n", "1", "--device", "cpu", "--f16-cache", "on"});
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.err.find("warning: --f16-cache") != std::string::npos);
}

TEST_CASE("ab.sh: equal outputs give ratios, exit 0", "[cli][scripts]") {
  const Outcome outcome = run_script(
      quoted(kScripts + "ab.sh") + " -r 2 -a '-t 1' -b 'MINFER_ISA=base -t 1' -- " + quoted(MINFER_CLI) +
      " -m " + quoted(kSmallModel) + " -p 'The quick brown fox' -n 4 --device cpu");
  INFO(outcome.out << outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.out.find("B / A") != std::string::npos);
  CHECK(outcome.out.find("prefill  A ") != std::string::npos);
  CHECK(outcome.out.find("decode   A ") != std::string::npos);
  CHECK(outcome.out.find("outputs: all 6 equal") != std::string::npos);
}

TEST_CASE("ab.sh: outputs that differ, or a run that fails, exit 1", "[cli][scripts]") {
  const std::string command = " -- " + quoted(MINFER_CLI) + " -m " + quoted(kSmallModel) +
                              " -p 'The quick brown fox' --ignore-eos --device cpu";
  const Outcome differing = run_script(quoted(kScripts + "ab.sh") + " -r 1 -a '-n 4' -b '-n 5'" + command);
  CHECK(differing.exit_code == 1);
  CHECK(differing.out.find("outputs: 2 of 4 differ") != std::string::npos);
  const Outcome failing = run_script(quoted(kScripts + "ab.sh") + " -r 1 -a '-n 4' -b '-n x'" + command);
  CHECK(failing.exit_code == 1);
  CHECK(failing.err.find("a run of b (-n x) failed") != std::string::npos);
  CHECK(run_script(quoted(kScripts + "ab.sh") + " -a x").exit_code == 2);
}

TEST_CASE("synth_gguf.py: what it writes is a model that runs", "[cli][scripts]") {
  if (run_script("command -v python3").exit_code != 0) MINFER_SKIP("no python3");
  const TempDir dir;
  const std::string model = dir.path("tiny.gguf"),
                    script = "python3 " + quoted(kScripts + "synth_gguf.py") + " ";
  REQUIRE(run_script(script + quoted(model) + " --preset tiny").exit_code == 0);
  const Outcome info = run_cli({"-m", model, "--info"});
  for (const char* part : {"synthetic tiny", "qwen2", "q4_K", "q6_K", "1024", "4096"}) {
    INFO(part << " in\n" << info.out << info.err);
    CHECK(info.out.find(part) != std::string::npos);
  }
  const Outcome run = run_cli({"-m", model, "-p", "Hello", "-n", "8", "--device", "cpu"});
  INFO(run.err);
  CHECK(run.exit_code == 0);
  CHECK_FALSE(run.out.empty());
  // Another file's tokenizer, cut or padded to the model's vocabulary.
  const std::string borrowed = dir.path("borrowed.gguf");
  REQUIRE(run_script(script + quoted(borrowed) + " --preset tiny --vocab " + quoted(kSmallModel)).exit_code ==
          0);
  const auto args = std::vector<std::string>{"--tokenize", "-p", "The quick brown fox", "-m"};
  auto here = args, there = args;
  here.push_back(borrowed);
  there.push_back(kSmallModel);
  const Outcome ids = run_cli(here);
  CHECK(ids.exit_code == 0);
  CHECK(ids.out == run_cli(there).out);
}
