#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "tests/cli/cli.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace minfer::test;

namespace {

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

// What a run writes to a standard error that is a terminal.
std::string on_terminal(std::vector<std::string> args, std::vector<std::string> env) {
  const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY);
  if (terminal < 0 || ::grantpt(terminal) != 0 || ::unlockpt(terminal) != 0) return "";
  const std::string name = ::ptsname(terminal);
  const int kept_open = ::open(name.c_str(), O_RDWR | O_NOCTTY);  // or what was written ends with its writer
  Run run;
  run.args = {"/bin/sh", "-c", "exec \"$@\" 2>" + name, "sh", MINFER_CLI};
  run.args.insert(run.args.end(), args.begin(), args.end());
  run.env = std::move(env);
  run_process(run);
  char buffer[4096];
  const ssize_t n = ::read(terminal, buffer, sizeof buffer);  // less than a terminal holds
  ::close(kept_open);
  ::close(terminal);
  return n > 0 ? std::string(buffer, static_cast<size_t>(n)) : "";
}

std::string ids_of(std::vector<std::string> more) {
  std::vector<std::string> args = {"-m", kSmallModel, "--tokenize"};
  args.insert(args.end(), more.begin(), more.end());
  return run_cli(args).out;
}

}  // namespace

TEST_CASE("manners: -q silences all but errors, never the answer", "[cli]") {
  const std::vector<std::string> args = {"-m", kSmallModel, "-p", "x", "-n", "8"};
  auto quiet = args;
  quiet.push_back("-q");
  const Outcome outcome = run_cli(quiet);
  CHECK(outcome.err.empty());
  CHECK(outcome.out == run_cli(args).out);
  const Outcome failed = run_cli({"-q", "-m", "/nonexistent", "-p", "x"});
  CHECK(failed.exit_code == 3);
  CHECK(is_one_error_line(failed));
}

TEST_CASE("manners: --log-file is appended to, with times, whatever -q says", "[cli]") {
  const TempDir dir;
  const std::string log = dir.write("log", std::string("before\n"));
  const Outcome outcome = run_cli({"-m", kSmallModel, "-p", "x", "-n", "2", "-q", "--log-file", log});
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.err.empty());
  std::istringstream lines(read_file(log));
  std::string line;
  std::getline(lines, line);
  CHECK(line == "before");
  const std::regex dated(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d (info|warning): .+)");
  int n_lines = 0;
  for (; std::getline(lines, line); ++n_lines) {
    INFO(line);
    CHECK(std::regex_match(line, dated));
  }
  CHECK(n_lines >= 3);
  CHECK(run_cli({"-m", "/nonexistent", "-p", "x", "--log-file", log}).exit_code == 3);
  CHECK(read_file(log).find("error: /nonexistent") != std::string::npos);
  CHECK(run_cli({"-v", "-m", kSmallModel, "-p", "x", "-n", "1", "--log-file", log}).exit_code == 0);
  CHECK(read_file(log).find("debug: ") != std::string::npos);
}

TEST_CASE("manners: a --log-file that cannot be is exit 2, and makes no folder", "[cli]") {
  const TempDir dir;
  const std::string log = dir.path("no-such-folder/log");
  const Outcome outcome = run_cli({"-m", kSmallModel, "-p", "x", "--log-file", log});
  CHECK(outcome.exit_code == 2);
  CHECK(is_one_error_line(outcome));
  CHECK(outcome.err.find("--log-file " + log + ": No such file") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(dir.path("no-such-folder")));
}

TEST_CASE("manners: a log that cannot be written is said once and ends nothing", "[cli]") {
  if (::access("/dev/full", W_OK) != 0) MINFER_SKIP("no /dev/full");
  const Outcome outcome = run_cli({"-m", kSmallModel, "-p", "x", "-n", "8", "-q", "--log-file", "/dev/full"});
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.out == run_cli({"-m", kSmallModel, "-p", "x", "-n", "8", "-q"}).out);
  CHECK(outcome.err.find("No space left") != std::string::npos);
  CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
}

TEST_CASE("manners: colour on a terminal, none with NO_COLOR", "[cli]") {
  const std::vector<std::string> args = {"-m", "/nonexistent", "-p", "x"};
  const std::string coloured = on_terminal(args, {"TERM=xterm-256color", "NO_COLOR="});
  if (coloured.empty()) MINFER_SKIP("no terminal to be had");
  CHECK(coloured.find("\x1b[") != std::string::npos);
  const std::string plain = on_terminal(args, {"TERM=xterm-256color", "NO_COLOR=1"});
  CHECK(plain.find("error: /nonexistent") != std::string::npos);
  CHECK(plain.find('\x1b') == std::string::npos);
}

TEST_CASE("manners: a trailing newline counts, --trim-newline drops one", "[cli]") {
  const TempDir dir;
  const auto from_file = [&](const std::string& text, bool trim) {
    const std::string path = dir.write("prompt", text);
    return trim ? ids_of({"-f", path, "--trim-newline"}) : ids_of({"-f", path});
  };
  const std::string without = ids_of({"-p", "a b"});
  CHECK(without.starts_with("["));
  CHECK(from_file("a b", false) == without);
  CHECK(from_file("a b", true) == without);
  CHECK(from_file("a b\n", false) == ids_of({"-p", "a b\n"}));
  CHECK(from_file("a b\n", true) == without);
  CHECK(from_file("a b\r\n", true) == without);
  CHECK(from_file("a b\n\n", true) == ids_of({"-p", "a b\n"}));
  CHECK(from_file("a b\r", true) == ids_of({"-p", "a b\r"}));
  Run run = cli({"-m", kSmallModel, "--tokenize", "-p", "-", "--trim-newline"});
  run.input = "a b\n";
  CHECK(run_process(run).out == without);
  run.input = "\n";
  const Outcome empty = run_process(run);
  CHECK(empty.exit_code == 2);
  CHECK(empty.err.find("empty") != std::string::npos);
}

TEST_CASE("manners: --escape reads -p, and says where it cannot", "[cli]") {
  const auto escaped = [](const std::string& text) { return ids_of({"--escape", "-p", text}); };
  CHECK(escaped(R"(a\n\t\r\\\"\'b)") == ids_of({"-p", "a\n\t\r\\\"'b"}));
  CHECK(escaped(R"(\x41\u00e9\u{1F600}\u{41})") == ids_of({"-p", "A\u00e9\U0001F600A"}));
  CHECK(escaped(R"(\xffz)") == ids_of({"-p", "\xffz"}));
  CHECK(ids_of({"-p", R"(a\nb)"}) != escaped(R"(a\nb)"));  // opt-in
  const std::vector<std::pair<std::string, std::string>> faults = {
      {R"(ab\q)", R"('\q' at byte 3)"},        {R"(ab\)", R"('\' at byte 3)"},
      {R"(\x4)", R"('\x4' at byte 1)"},        {R"(\xg0)", R"('\xg0' at byte 1)"},
      {R"(\u12)", R"('\u12' at byte 1)"},      {R"(\u{})", R"('\u{}' at byte 1)"},
      {R"(\u{41)", R"('\u{' at byte 1)"},      {R"(\ud800)", R"('\ud800' at byte 1)"},
      {R"(\u{110000})", R"('\u{110000}' at)"}, {R"(\u{fffffffff})", R"('\u{fffffffff}')"}};
  for (const auto& [text, said] : faults) {
    const Outcome outcome = run_cli({"-m", kSmallModel, "--tokenize", "-e", "-p", text});
    INFO(text << " said " << outcome.err);
    CHECK(outcome.exit_code == 2);
    CHECK(is_one_error_line(outcome));
    CHECK(outcome.err.find("--escape: ") != std::string::npos);
    CHECK(outcome.err.find(said) != std::string::npos);
  }
}

TEST_CASE("manners: a prompt is bytes, UTF-8 or not", "[cli]") {
  const TempDir dir;
  const std::string bytes = std::string("a\xff\xfe\0\xc3z", 6);
  const std::string path = dir.write("prompt", bytes);
  const Outcome outcome = run_cli({"-m", kSmallModel, "-f", path, "-n", "4", "-q"});
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.err.empty());
  const auto ids = nlohmann::json::parse(ids_of({"-f", path}));
  CHECK(ids.size() >= 5);
}

TEST_CASE("manners: --list-devices needs no model", "[cli]") {
  const Outcome text = run_cli({"--list-devices"});
  CHECK(text.exit_code == 0);
  CHECK(text.err.empty());
  CHECK(text.out.starts_with("cpu: "));
  CHECK(text.out.find("\ncuda") != std::string::npos);
  const Outcome json = run_cli({"--list-devices", "--json"});
  std::istringstream lines(json.out);
  std::string line;
  std::vector<nlohmann::json> devices;
  while (std::getline(lines, line)) devices.push_back(nlohmann::json::parse(line));
  REQUIRE(devices.size() >= 2);
  CHECK(devices[0]["device"] == "cpu");
  CHECK(devices[0]["usable"] == true);
  CHECK(devices[0]["processors"].get<int>() >= 1);
  CHECK(devices[0]["memory_bytes"].get<uint64_t>() >= devices[0]["available_bytes"].get<uint64_t>());
  for (size_t i = 1; i < devices.size(); ++i) {
    CHECK(devices[i]["device"] == "cuda");
    CHECK(devices[i]["usable"].get<bool>() != devices[i].contains("why_not"));
  }
}

// 130 and every way to it: one_command_test.cpp.
TEST_CASE("manners: every exit code", "[cli]") {
  const TempDir dir;
  CHECK(run_cli({"-m", kSmallModel, "-p", "x", "-n", "1"}).exit_code == 0);
  Run broken = cli({"-m", kSmallModel, "-p", "x", "-n", "-1", "--ignore-eos"});
  broken.close_stdout_after = 1;
  CHECK(run_process(broken).exit_code == 1);
  CHECK(run_cli({"-m", kSmallModel, "-p", "x", "-n", "x"}).exit_code == 2);
  CHECK(run_cli({"-m", dir.write("model", std::string("no model")), "-p", "x"}).exit_code == 3);
  // No card, or a build without CUDA; where a card is usable, a KV cache that no card holds.
  CHECK(
      run_cli({"-m", kSmallModel, "-p", "x", "--device", "cuda", "-n", "-1", "-c", "2000000000"}).exit_code ==
      4);
}
