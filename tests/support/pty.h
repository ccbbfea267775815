// Runs a program on a terminal of its own, as a user at the keyboard would.
#pragma once

#include <sys/types.h>
#include <termios.h>

#include <string>
#include <string_view>
#include <vector>

namespace minfer::test {

class PtyProcess {
 public:
  struct Settings {
    std::vector<std::string> env;  // "NAME=value", added to this process's
    unsigned short rows = 24, columns = 80;
    double timeout_seconds = 120;  // of every wait
  };
  // args[0] is the program.
  PtyProcess(std::vector<std::string> args, Settings settings);
  ~PtyProcess();  // SIGKILL where it still runs
  PtyProcess(const PtyProcess&) = delete;
  PtyProcess& operator=(const PtyProcess&) = delete;

  void send(std::string_view bytes);
  void kill(int signal);
  void resize(unsigned short rows, unsigned short columns);

  // Waits until `text` has come, behind what earlier calls waited for. False at the end of the output, and
  // once the time is up.
  bool expect(std::string_view text);
  bool expect_bytes(size_t n);
  // Its exit code, 128 + n where signal n ended it, -1 once the time is up. What it writes meanwhile is read,
  // and `key` is pressed again and again.
  int wait_exit(std::string_view key = {});

  const std::string& output() const { return output_; }  // all of it so far
  std::string unread() const { return output_.substr(read_); }
  bool mode_is_restored() const;  // to what it was before the program

 private:
  bool press(std::string_view key);  // false where the terminal is gone
  bool read_some(int timeout_ms);    // false at the end

  Settings settings_;
  pid_t child_ = -1;
  int master_ = -1;
  termios mode_before_{};
  std::string output_;
  size_t read_ = 0;  // of output_: what was waited for
};

}  // namespace minfer::test
