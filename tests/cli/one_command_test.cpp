// What people type, as they type it: through a shell where the line is one.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "tests/cli/cli.h"
#include "tests/support/catch.h"
#include "tests/support/oracle.h"
#include "tests/support/temp_dir.h"

using namespace minfer::test;

namespace {

// The program's own deadline stands well below a second. What is measured from outside waits for a processor
// too, on a machine where other tests run, under sanitizers.
constexpr double kOneSecond = 2;

const std::string kMinfer = MINFER_CLI;

Outcome run_shell(const std::string& line, std::vector<std::string> env = {}) {
  Run run;
  run.args = {"/bin/sh", "-c", line};
  run.env = std::move(env);
  return run_process(run);
}

Outcome check_interrupted(const Run& run) {
  const Outcome outcome = run_process(run);
  INFO("signal " << run.signal << ", " << outcome.seconds_after_event << " s later: " << outcome.err);
  CHECK_FALSE(outcome.timed_out);
  CHECK(outcome.exit_code == 130);
  CHECK(outcome.seconds_after_event < kOneSecond);
  return outcome;
}

std::string words(int n) {
  std::string text;
  for (int i = 0; i < n; ++i) text += "word ";
  return text;
}

bool is_error(const Outcome& outcome, int exit_code, std::initializer_list<const char*> said) {
  return outcome.exit_code == exit_code && is_one_error_line(outcome) &&
         std::all_of(said.begin(), said.end(),
                     [&](const char* text) { return outcome.err.find(text) != std::string::npos; });
}

}  // namespace

TEST_CASE("one command: </dev/null, into a pipe", "[cli]") {
  const Outcome plain = run_cli({"-m", kSmallModel, "-p", "x", "-n", "20"});
  const Outcome piped = run_shell(kMinfer + " -m " + kSmallModel + " -p x -n 20 </dev/null | cat");
  CHECK(piped.exit_code == 0);
  CHECK_FALSE(piped.out.empty());
  CHECK(piped.out == plain.out);
}

TEST_CASE("one command: head takes ten bytes, and the run ends", "[cli]") {
  const std::string run = kMinfer + " -m " + kSmallModel + " -p x -n -1 --ignore-eos -q";
  const Outcome outcome = run_shell(
      "{ " + run + " 2>/dev/null; date +%s.%N >&2; } | { head -c 10; exec 0<&-; date +%s.%N >&2; }");
  CHECK(outcome.out.size() == 10);
  // The run's end is the later one.
  const size_t newline = outcome.err.find('\n');
  REQUIRE(newline != std::string::npos);
  const double head_end = std::stod(outcome.err), run_end = std::stod(outcome.err.substr(newline + 1));
  INFO(outcome.err);
  CHECK(run_end - head_end < kOneSecond);
}

TEST_CASE("one command: a full disk is exit 1", "[cli]") {
  if (::access("/dev/full", W_OK) != 0) MINFER_SKIP("no /dev/full");
  const Outcome outcome = run_shell(kMinfer + " -m " + kSmallModel + " -p x -n 20 -q > /dev/full");
  CHECK(is_error(outcome, 1, {"standard output", "No space left"}));
}

TEST_CASE("one command: a decimal point is one in every locale", "[cli]") {
  const std::vector<std::string> args = {"-m",     kSmallModel, "-p",     "x", "-n",    "20",
                                         "--temp", "0.5",       "--seed", "7", "--json"};
  Run german = cli(args), plain = cli(args);
  german.env = {"LC_ALL=de_DE.UTF-8", "LC_NUMERIC=de_DE.UTF-8"};
  plain.env = {"LC_ALL=C"};
  const auto text = [](const Outcome& outcome) {
    return outcome.out.substr(0, outcome.out.find("\"timings\""));
  };
  const Outcome in_german = run_process(german), in_c = run_process(plain);
  CHECK(in_german.exit_code == 0);
  CHECK(text(in_german).size() > 20);
  CHECK(text(in_german) == text(in_c));
}

TEST_CASE("one command: -n 5 --stop -n", "[cli]") {
  const Outcome outcome = run_cli({"-m", kSmallModel, "-p", "x", "--ignore-eos", "-n", "5", "--stop", "-n"});
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.out == run_cli({"-m", kSmallModel, "-p", "x", "--ignore-eos", "-n", "5"}).out);
}

TEST_CASE("one command: a prompt of 200 KB by -f and standard input", "[cli]") {
  const TempDir dir;
  const std::string prompt = words(40000);
  REQUIRE(prompt.size() == 200000);
  const std::string path = dir.write("prompt", prompt);
  const Outcome ids = run_cli({"-m", kSmallModel, "--tokenize", "-f", path});
  CHECK(ids.exit_code == 0);
  const auto n_ids = 1 + std::count(ids.out.begin(), ids.out.end(), ',');
  CHECK(n_ids > 40000 / 2);
  Run by_stdin = cli({"-m", kSmallModel, "--tokenize", "-p", "-"});
  by_stdin.input = prompt;
  CHECK(run_process(by_stdin).out == ids.out);

  const Outcome refused = run_cli({"-m", kSmallModel, "-q", "-f", path});
  INFO(refused.err);
  CHECK(is_error(refused, 2, {(std::to_string(n_ids) + " tokens").c_str(), "context of 4096"}));
  by_stdin.args = cli({"-m", kSmallModel, "-q", "-p", "-"}).args;
  CHECK(run_process(by_stdin).err == refused.err);
}

TEST_CASE("one command: -m that is no file to be read", "[cli]") {
  const TempDir dir;
  const std::string file = dir.write("file", std::string("x"));
  CHECK(is_error(run_cli({"-m", dir.path().string(), "-p", "x"}), 3, {"directory"}));
  CHECK(is_error(run_cli({"-m", dir.path("absent.gguf"), "-p", "x"}), 3, {"absent.gguf", "No such file"}));
  CHECK(is_error(run_cli({"-m", file + "/model.gguf", "-p", "x"}), 3, {"model.gguf", "Not a directory"}));
  if (::geteuid() == 0) return;  // root reads everything
  ::chmod(file.c_str(), 0);
  CHECK(is_error(run_cli({"-m", file, "-p", "x"}), 3, {"Permission denied"}));
}

TEST_CASE("signals: within a second at any moment of a start", "[cli][signals]") {
  const auto real = find_model("SmolLM2-135M-Instruct.Q4_1.gguf");
  const std::string model = real ? real->string() : kSmallModel;
  for (const int milliseconds : {0, 2, 5, 10, 20, 40, 60, 80, 120, 160, 240, 400}) {
    Run run = cli({"-m", model, "-p", "x", "-n", "-1", "--ignore-eos"});
    run.interrupt_at =
        milliseconds / 1e3;  // the first ones may come before main(): the shell's 130 is the same
    check_interrupted(run);
  }
}

TEST_CASE("signals: in loading, in a long prefill, in decoding", "[cli][signals]") {
  const TempDir dir;
  const std::string prompt = dir.write("prompt", words(2000));
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    for (const char* moment : {"debug: loading", "debug: prefill"}) {
      INFO(moment);
      Run run = cli({"-v", "-t", "1", "-m", kSmallModel, "-f", prompt, "-n", "1"});
      run.signal = signal;
      run.interrupt_on_stderr = moment;
      const Outcome outcome = check_interrupted(run);
      CHECK(outcome.out.empty());
      CHECK(outcome.err.find(": interrupted\n") !=
            std::string::npos);  // said by who unwinds: no deadline was needed
    }
    Run run = cli({"-m", kSmallModel, "-p", "x", "-n", "-1", "--ignore-eos"});
    run.signal = signal;
    run.interrupt_after = 1;
    check_interrupted(run);
  }
}

TEST_CASE("signals: waiting for a prompt that does not come", "[cli][signals]") {
  const TempDir dir;
  const std::string pipe = dir.path("pipe");
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  Run by_stdin = cli({"-v", "-m", kSmallModel, "-p", "-"});
  by_stdin.input_stays_open = true;
  by_stdin.interrupt_on_stderr = "reading standard input";
  Run by_name = cli({"-v", "-m", kSmallModel, "-f", pipe});
  by_name.interrupt_on_stderr = "reading " + pipe;
  for (Run run : {by_stdin, by_name}) {
    for (const int signal : {SIGINT, SIGTERM}) {
      run.signal = signal;
      CHECK(check_interrupted(run).out.empty());
    }
  }
}

TEST_CASE("signals: out of a write that nobody takes, by the deadline", "[cli][signals]") {
  const TempDir dir;
  const std::string pipe = dir.path("pipe");
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  const int never_read = ::open(pipe.c_str(), O_RDWR);
  REQUIRE(never_read >= 0);
  Run run = cli({"-m", kSmallModel, "--tokenize", "-f", dir.write("prompt", words(40000))});
  run.stdout_path = pipe;
  run.interrupt_at = 1;
  check_interrupted(run);
  ::close(never_read);
}

TEST_CASE("signals: a second one ends the process at once", "[cli][signals]") {
  const TempDir dir;
  const std::string pipe = dir.path("pipe");
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  const int never_read = ::open(pipe.c_str(), O_RDWR);
  REQUIRE(never_read >= 0);
  const std::string prompt = dir.write("prompt", words(40000));
  const Outcome outcome =
      run_shell(kMinfer + " -m " + kSmallModel + " --tokenize -f " + prompt + " >" + pipe +
                " & pid=$!; sleep 1; kill -TERM $pid; kill -INT $pid; date +%s.%N; "
                "wait $pid; echo $?; date +%s.%N");
  ::close(never_read);
  const size_t first = outcome.out.find('\n'), second = outcome.out.find('\n', first + 1);
  REQUIRE(second != std::string::npos);
  CHECK(outcome.out.substr(first + 1, second - first - 1) == "130");
  CHECK(std::stod(outcome.out.substr(second + 1)) - std::stod(outcome.out) < 0.5);
}

TEST_CASE("signals: nohup ignores SIGHUP", "[cli][signals]") {
  Run run;
  run.args = {"/bin/sh", "-c",
              "trap '' HUP; exec " + kMinfer + " -m " + kSmallModel + " -p x -n 30 --ignore-eos"};
  run.signal = SIGHUP;
  run.interrupt_after = 1;
  const Outcome outcome = run_process(run);
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.out == run_cli({"-m", kSmallModel, "-p", "x", "-n", "30", "--ignore-eos"}).out);
}
