#include <unistd.h>

#include <fstream>

#include "core/generator.h"
#include "core/reference/reference_engine.h"
#include "nlohmann/json.hpp"
#include "tests/cli/cli.h"
#include "tests/support/catch.h"
#include "tests/support/oracle.h"
#include "tests/support/temp_dir.h"

using namespace minfer;
using namespace minfer::test;

namespace {

const std::string kPrompt = "The quick brown fox";

struct Expected {
  std::string text;
  std::vector<TokenId> prompt_ids;
  Generation run;
};

// The same completion, computed in this process.
Expected expect_completion(int32_t n_predict, bool ignore_eos = true) {
  const auto file = gguf::Reader::open(kSmallModel);
  const auto tokenizer = Tokenizer::from_metadata(file.metadata());
  const auto engine = make_reference_engine(file, {.n_vocab_used = tokenizer->n_vocab()});
  Expected expected;
  expected.prompt_ids = tokenizer->encode(kPrompt);
  expected.run =
      generate(*engine, *tokenizer, expected.prompt_ids, {.n_predict = n_predict, .ignore_eos = ignore_eos},
               [&](std::string_view piece) { expected.text += piece; });
  return expected;
}

std::vector<std::string> completion_args(int32_t n_predict) {
  return {"-m", kSmallModel, "-p", kPrompt, "--ignore-eos", "-n", std::to_string(n_predict)};
}

}  // namespace

TEST_CASE("output: stdout is exactly the completion", "[cli]") {
  const Expected expected = expect_completion(40);
  REQUIRE(expected.run.ids.size() == 40);
  const Outcome outcome = run_cli(completion_args(40));
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.out == expected.text);
  for (const char* word : {"load", "prefill", "decode", "tokens/s", "peak memory", "stopped"}) {
    INFO(word);
    CHECK(outcome.err.find(word) != std::string::npos);
  }
}

TEST_CASE("output: a prompt from -p, -f and standard input is the same prompt, byte for byte", "[cli]") {
  const TempDir dir;
  const std::string prompt = "two\nlines, a tab\t and a trailing newline\n";
  const Outcome by_flag = run_cli({"-m", kSmallModel, "-p", prompt, "-n", "12", "--ignore-eos"});
  const Outcome by_file =
      run_cli({"-m", kSmallModel, "-f", dir.write("prompt", prompt), "-n", "12", "--ignore-eos"});
  Run stdin_run = cli({"-m", kSmallModel, "-p", "-", "-n", "12", "--ignore-eos"});
  stdin_run.input = prompt;
  const Outcome by_stdin = run_process(stdin_run);
  CHECK(by_flag.exit_code == 0);
  CHECK_FALSE(by_flag.out.empty());
  CHECK(by_file.out == by_flag.out);
  CHECK(by_stdin.out == by_flag.out);
  const Outcome trimmed =
      run_cli({"-m", kSmallModel, "-p", prompt.substr(0, prompt.size() - 1), "--tokenize"});
  CHECK(trimmed.out != run_cli({"-m", kSmallModel, "-p", prompt, "--tokenize"}).out);
}

TEST_CASE("output: any number of threads gives the same text", "[cli]") {
  auto args = completion_args(24);
  args.insert(args.end(), {"-t", "1"});
  const Outcome one = run_cli(args);
  args.back() = std::to_string(3);
  CHECK(one.exit_code == 0);
  CHECK(one.out == run_cli(args).out);
}

TEST_CASE("output: -q leaves stderr empty and the answer whole", "[cli]") {
  auto args = completion_args(8);
  args.push_back("-q");
  const Outcome outcome = run_cli(args);
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.err.empty());
  CHECK(outcome.out == expect_completion(8).text);
}

TEST_CASE("output: no colour off a terminal", "[cli]") {
  CHECK(run_cli(completion_args(2)).err.find('\x1b') == std::string::npos);
}

TEST_CASE("output: -n 0 computes and prints nothing", "[cli]") {
  const Outcome outcome = run_cli(completion_args(0));
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.out.empty());
  CHECK(outcome.err.find("n/a") != std::string::npos);
}

TEST_CASE("output: the context ends a completion, and the log says so", "[cli]") {
  const auto n_prompt = static_cast<int32_t>(expect_completion(0).prompt_ids.size());
  auto args = completion_args(-1);
  args.insert(args.end(), {"-c", std::to_string(n_prompt + 5)});
  const Outcome outcome = run_cli(args);
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.out == expect_completion(5).text);
  CHECK(outcome.err.find("context full") != std::string::npos);
}

TEST_CASE("output: --tokenize prints one JSON array of the prompt's ids", "[cli]") {
  const Outcome outcome = run_cli({"-m", kSmallModel, "--tokenize", "-p", kPrompt});
  CHECK(outcome.exit_code == 0);
  CHECK(nlohmann::json::parse(outcome.out).get<std::vector<TokenId>>() == expect_completion(0).prompt_ids);
  CHECK(std::count(outcome.out.begin(), outcome.out.end(), '\n') == 1);
}

TEST_CASE("output: --info names what the file holds", "[cli]") {
  const Outcome outcome = run_cli({"-m", kSmallModel, "--info"});
  CHECK(outcome.exit_code == 0);
  for (const char* word : {"qwen2", "q4_K", "q6_K", "f32", "gpt2", "EOS", "trained context", "4096",
                           "KV cache", "memory needed"}) {
    INFO(word);
    CHECK(outcome.out.find(word) != std::string::npos);
  }
}

TEST_CASE("output: a closed pipe ends the run, exit 1", "[cli]") {
  Run run = cli(completion_args(3000));
  run.close_stdout_after = 10;
  const Outcome outcome = run_process(run);
  CHECK_FALSE(outcome.timed_out);
  CHECK(outcome.exit_code == 1);
  CHECK(outcome.seconds_after_event < 5);  // a step of a small model, under sanitizers and beside other tests
  CHECK(outcome.err.find("error: standard output: Broken pipe\n") != std::string::npos);
}

TEST_CASE("output: a full disk ends the run, exit 1", "[cli]") {
  if (::access("/dev/full", W_OK) != 0) MINFER_SKIP("no /dev/full");
  for (const auto& args : {completion_args(20), {"-m", kSmallModel, "--info"}, {"--help"}}) {
    Run run = cli(args);
    run.stdout_path = "/dev/full";
    const Outcome outcome = run_process(run);
    CHECK(outcome.exit_code == 1);
    CHECK(outcome.err.find("error: standard output: No space left on device\n") != std::string::npos);
  }
}

TEST_CASE("output: Ctrl-C in mid-stream keeps whole characters and exits with 130", "[cli]") {
  const Expected expected = expect_completion(400);
  Run run = cli(completion_args(3000));
  run.interrupt_after = 1;
  const Outcome outcome = run_process(run);
  CHECK_FALSE(outcome.timed_out);
  CHECK(outcome.exit_code == 130);
  CHECK(outcome.seconds_after_event < 5);
  CHECK_FALSE(outcome.out.empty());
  const size_t n = std::min(outcome.out.size(), expected.text.size());
  CHECK(outcome.out.substr(0, n) == expected.text.substr(0, n));
  CHECK(outcome.err.find("stopped: interrupted") != std::string::npos);
}

TEST_CASE("output: Ctrl-C while the prompt is awaited exits with 130", "[cli]") {
  Run run = cli({"-v", "-m", kSmallModel, "-p", "-"});
  run.input_stays_open = true;
  run.interrupt_on_stderr = "reading standard input";  // -v says that it waits
  const Outcome outcome = run_process(run);
  CHECK_FALSE(outcome.timed_out);
  CHECK(outcome.exit_code == 130);
  CHECK(outcome.out.empty());
}

TEST_CASE("output: a real model answers (real model)", "[cli][oracle][real]") {
  const auto model = find_model("SmolLM2-135M-Instruct.Q4_1.gguf");
  if (!model) MINFER_SKIP("no SmolLM2-135M-Instruct.Q4_1.gguf");
  const Outcome outcome = run_cli({"-m", model->string(), "-p", "The capital of France is", "-n", "2"});
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.out == " Paris.");
}
