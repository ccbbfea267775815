#include "apps/terminal/terminal.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "apps/output.h"
#include "core/cancel.h"
#include "core/error.h"

namespace minfer {
namespace {

constexpr std::string_view kBracketedPasteOn = "\x1b[?2004h";
constexpr std::string_view kBracketedPasteOff = "\x1b[?2004l";

// What signal handlers need.
termios g_before;
int g_wake[2] = {-1, -1};  // a pipe: SIGWINCH may come to any thread, and just before the main one waits
std::atomic<bool> g_resized{false};

// TCSANOW: waiting for the output would wait for ever where nobody reads it. Async-signal-safe.
bool set(const termios& mode) {
  int result;
  do {
    result = ::tcsetattr(STDIN_FILENO, TCSANOW, &mode);
  } while (result != 0 && errno == EINTR);
  return result == 0;
}

// Async-signal-safe, and returns at once.
void put_back() {
  set(g_before);
  pollfd output{STDOUT_FILENO, POLLOUT, 0};
  if (::poll(&output, 1, 0) <= 0) return;
  [[maybe_unused]] const ssize_t n =
      ::write(STDOUT_FILENO, kBracketedPasteOff.data(), kBracketedPasteOff.size());
}

extern "C" void on_resize(int) {
  const int error = errno;
  g_resized = true;
  [[maybe_unused]] const ssize_t n = ::write(g_wake[1], "", 1);
  errno = error;
}

[[noreturn]] void fail(const char* what) {
  throw Error(ExitCode::kRuntime, std::string(what) + ": " + std::strerror(errno));
}

}  // namespace

bool Terminal::is_capable() {
  const char* name = std::getenv("TERM");
  return name != nullptr && *name != '\0' && std::strcmp(name, "dumb") != 0;
}

Terminal::Terminal() {
  if (::tcgetattr(STDIN_FILENO, &g_before) != 0) fail("the terminal");
  if (::pipe2(g_wake, O_CLOEXEC | O_NONBLOCK) != 0) fail("pipe");
  at_forced_exit(put_back);
  struct sigaction action {};
  action.sa_handler = on_resize;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGWINCH, &action, nullptr);
  answer_mode();
  write(kBracketedPasteOn);
}

Terminal::~Terminal() {
  std::signal(SIGWINCH, SIG_DFL);
  put_back();
  at_forced_exit(nullptr);  // not before: a signal may end the process in between
  for (int& fd : g_wake) ::close(std::exchange(fd, -1));
}

void Terminal::set_mode(bool signals) {
  termios mode = g_before;
  mode.c_iflag &= ~static_cast<tcflag_t>(ICRNL | INLCR | IGNCR | ISTRIP | IXON);
  mode.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO | IEXTEN | ISIG);
  if (signals) mode.c_lflag |= ISIG;
  mode.c_oflag |= OPOST | ONLCR;
  // Neither leaves a chance to put the terminal back.
  mode.c_cc[VQUIT] = mode.c_cc[VSUSP] = _POSIX_VDISABLE;
  mode.c_cc[VMIN] = 1;
  mode.c_cc[VTIME] = 0;
  if (!set(mode)) fail("the terminal");
}

void Terminal::answer_mode() {
  set_mode(true);
}

void Terminal::edit_mode() {
  set_mode(false);
}

Terminal::Size Terminal::size() const {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0) return {24, 80};
  return {size.ws_row, size.ws_col};
}

Terminal::Event Terminal::wait(int timeout_ms) {
  pollfd fds[2] = {{STDIN_FILENO, POLLIN, 0}, {g_wake[0], POLLIN, 0}};
  const int n = ::poll(fds, 2, timeout_ms);
  char drained[64];
  while (::read(g_wake[0], drained, sizeof drained) > 0) {
  }
  if (g_resized.exchange(false)) return Event::kResize;
  if (n < 0) return errno == EINTR ? Event::kSignal : Event::kEnd;
  if (fds[0].revents != 0) return Event::kInput;
  return n == 0 ? Event::kTimeout : Event::kSignal;
}

std::string Terminal::read() {
  char buffer[4096];
  for (;;) {
    const ssize_t n = ::read(STDIN_FILENO, buffer, sizeof buffer);
    if (n >= 0) return {buffer, static_cast<size_t>(n)};
    if (errno != EINTR) return {};  // the terminal is gone
  }
}

void Terminal::write(std::string_view bytes) {
  write_stdout(bytes);
}

void Terminal::suspend() {
  put_back();
  ::raise(SIGTSTP);
  edit_mode();
  write(kBracketedPasteOn);
}

}  // namespace minfer
