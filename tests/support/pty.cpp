#include "tests/support/pty.h"

#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utmp.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace minfer::test {
namespace {

constexpr int kStepMs = 50;

class Deadline {
 public:
  explicit Deadline(double seconds) : end_(Clock::now() + std::chrono::duration<double>(seconds)) {}
  bool passed() const { return Clock::now() > end_; }

 private:
  using Clock = std::chrono::steady_clock;
  std::chrono::time_point<Clock, std::chrono::duration<double>> end_;
};

}  // namespace

PtyProcess::PtyProcess(std::vector<std::string> args, Settings settings) : settings_(std::move(settings)) {
  const winsize size{settings_.rows, settings_.columns, 0, 0};
  int slave = -1;
  if (::openpty(&master_, &slave, nullptr, nullptr, &size) != 0 || ::tcgetattr(slave, &mode_before_) != 0) {
    throw std::runtime_error(std::string("openpty: ") + std::strerror(errno));
  }
  child_ = ::fork();
  if (child_ < 0) throw std::runtime_error(std::string("fork: ") + std::strerror(errno));
  if (child_ > 0) {
    ::close(slave);
    return;
  }
  ::close(master_);
  ::login_tty(slave);
  std::vector<char*> argv;
  for (std::string& arg : args) argv.push_back(arg.data());
  argv.push_back(nullptr);
  for (std::string& setting : settings_.env) ::putenv(setting.data());
  ::execv(argv[0], argv.data());
  _exit(127);
}

PtyProcess::~PtyProcess() {
  if (child_ > 0) {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }
  ::close(master_);
}

bool PtyProcess::press(std::string_view key) {
  while (!key.empty()) {
    const ssize_t n = ::write(master_, key.data(), key.size());
    if (n < 0) return false;
    key.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

void PtyProcess::send(std::string_view bytes) {
  if (!press(bytes)) throw std::runtime_error(std::string("terminal: ") + std::strerror(errno));
}

void PtyProcess::kill(int signal) {
  ::kill(child_, signal);
}

void PtyProcess::resize(unsigned short rows, unsigned short columns) {
  const winsize size{rows, columns, 0, 0};
  ::ioctl(master_, TIOCSWINSZ, &size);
}

bool PtyProcess::read_some(int timeout_ms) {
  pollfd fd{master_, POLLIN, 0};
  if (::poll(&fd, 1, timeout_ms) <= 0) return true;
  char buffer[4096];
  const ssize_t n = ::read(master_, buffer, sizeof buffer);
  if (n <= 0) return false;  // EIO: nobody has the terminal open any more
  output_.append(buffer, static_cast<size_t>(n));
  return true;
}

bool PtyProcess::expect(std::string_view text) {
  const Deadline deadline(settings_.timeout_seconds);
  for (;;) {
    const size_t at = output_.find(text, read_);
    if (at != std::string::npos) {
      read_ = at + text.size();
      return true;
    }
    if (!read_some(kStepMs) || deadline.passed()) return false;
  }
}

bool PtyProcess::expect_bytes(size_t n) {
  const Deadline deadline(settings_.timeout_seconds);
  while (output_.size() < read_ + n) {
    if (!read_some(kStepMs) || deadline.passed()) return false;
  }
  read_ += n;
  return true;
}

int PtyProcess::wait_exit(std::string_view key) {
  const Deadline deadline(settings_.timeout_seconds);
  int status = 0;
  while (::waitpid(child_, &status, WNOHANG) == 0) {
    if (deadline.passed()) return -1;
    press(key);
    if (!read_some(kStepMs))
      ::poll(nullptr, 0, 1);  // the terminal is closed just before the process has ended
  }
  child_ = -1;
  while (read_some(0) && !deadline.passed()) {
    pollfd fd{master_, POLLIN, 0};
    if (::poll(&fd, 1, 0) <= 0) break;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool PtyProcess::mode_is_restored() const {
  termios mode{};
  if (::tcgetattr(master_, &mode) != 0) throw std::runtime_error("the terminal has no mode");
  return mode.c_iflag == mode_before_.c_iflag && mode.c_oflag == mode_before_.c_oflag &&
         mode.c_lflag == mode_before_.c_lflag && std::equal(mode.c_cc, mode.c_cc + NCCS, mode_before_.c_cc);
}

}  // namespace minfer::test
