// Runs a program as a shell would, for the tests of the command line.
#pragma once

#include <csignal>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace minfer::test {

struct Run {
  std::vector<std::string> args;             // args[0] is the program
  std::string input;                         // what it reads on standard input, which then ends
  bool input_stays_open = false;             // ... or does not end
  std::vector<std::string> env;              // "NAME=value", added to this process's
  std::string stdout_path;                   // a file to open as standard output; empty: captured
  std::optional<size_t> close_stdout_after;  // the reader goes away once it has read so many bytes
  int signal = SIGINT;                       // what it is sent, where one of these says when:
  std::optional<size_t> interrupt_after;     // once it has written so many bytes to standard output
  std::string interrupt_file;                // ... or, where this is set, to this file
  std::string interrupt_on_stderr;           // once this stands on standard error
  std::optional<double> interrupt_at;        // so many seconds after its start
  double timeout_seconds = 120;              // SIGKILL, and timed_out
};

struct Outcome {
  int exit_code = -1;  // 128 + n where signal n ended it
  std::string out;
  std::string err;
  double seconds_after_event = 0;  // from closing stdout, or the signal, to the end of the process
  bool timed_out = false;
};

Outcome run_process(const Run& run);

}  // namespace minfer::test
