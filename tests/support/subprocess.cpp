#include "tests/support/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <stdexcept>

namespace minfer::test {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

class Fd {
 public:
  explicit Fd(int fd = -1) : fd_(fd) {}
  ~Fd() { close(); }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  void reset(int fd) {
    close();
    fd_ = fd;
  }
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

struct Pipe {
  Fd read_end, write_end;
  Pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error(std::string("pipe: ") + std::strerror(errno));
    read_end.reset(ends[0]);
    write_end.reset(ends[1]);
  }
};

sigset_t stopping_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, signal);
  return set;
}

// In the child: neither the test program's handlers nor what a shell's background job has ignored.
void default_signals() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::signal(signal, SIG_DFL);
  const sigset_t set = stopping_signals();
  ::sigprocmask(SIG_UNBLOCK, &set, nullptr);
}

[[noreturn]] void become(const Run& run, int in, int out, int err) {
  ::dup2(in, STDIN_FILENO);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(err, STDERR_FILENO);
  ::signal(SIGPIPE, SIG_DFL);
  default_signals();
  std::vector<char*> argv;
  for (const std::string& arg : run.args) argv.push_back(const_cast<char*>(arg.c_str()));
  argv.push_back(nullptr);
  for (const std::string& setting : run.env) ::putenv(const_cast<char*>(setting.c_str()));
  ::execv(argv[0], argv.data());
  _exit(127);
}

// Feeds and drains the child's pipes until both outputs have ended.
class Conversation {
 public:
  Conversation(const Run& run, pid_t child, Pipe& in, Pipe& out, Pipe& err)
      : run_(run), child_(child), in_(in), out_(out), err_(err) {
    ::fcntl(in_.write_end.get(), F_SETFL, O_NONBLOCK);
  }

  void hold(Outcome& outcome) {
    while (out_.read_end.get() >= 0 || err_.read_end.get() >= 0) {
      if (seconds_since(start_) > run_.timeout_seconds) {
        outcome.timed_out = true;
        ::kill(child_, SIGKILL);
        return;
      }
      step(outcome);
      act(outcome);
    }
  }

  Clock::time_point event() const { return event_; }

 private:
  void step(Outcome& outcome) {
    pollfd fds[3] = {{out_.read_end.get(), POLLIN, 0},
                     {err_.read_end.get(), POLLIN, 0},
                     {in_.write_end.get(), POLLOUT, 0}};
    ::poll(fds, 3, run_.interrupt_file.empty() ? 20 : 1);
    if (fds[0].revents) drain(out_.read_end, outcome.out);
    if (fds[1].revents) drain(err_.read_end, outcome.err);
    if (fds[2].revents) feed();
  }

  void drain(Fd& fd, std::string& into) {
    char buffer[4096];
    const ssize_t n = ::read(fd.get(), buffer, sizeof buffer);
    if (n > 0) {
      into.append(buffer, static_cast<size_t>(n));
    } else {
      fd.close();
    }
  }

  void feed() {
    if (n_fed_ < run_.input.size()) {
      const ssize_t n = ::write(in_.write_end.get(), run_.input.data() + n_fed_, run_.input.size() - n_fed_);
      if (n < 0) return in_.write_end.close();
      n_fed_ += static_cast<size_t>(n);
    }
    if (n_fed_ == run_.input.size() && !run_.input_stays_open) in_.write_end.close();
  }

  void act(const Outcome& outcome) {
    if (acted_) return;
    if (run_.close_stdout_after && outcome.out.size() >= *run_.close_stdout_after) {
      out_.read_end.close();
      acted_ = true;
    }
    if (is_due(outcome)) {
      ::kill(child_, run_.signal);
      acted_ = true;
    }
    if (acted_) event_ = Clock::now();
  }

  bool is_due(const Outcome& outcome) const {
    const std::string& line = run_.interrupt_on_stderr;
    return (run_.interrupt_after && n_written(outcome) >= *run_.interrupt_after) ||
           (!line.empty() && outcome.err.find(line) != std::string::npos) ||
           (run_.interrupt_at && seconds_since(start_) >= *run_.interrupt_at);
  }

  size_t n_written(const Outcome& outcome) const {
    if (run_.interrupt_file.empty()) return outcome.out.size();
    struct stat file {};
    return ::stat(run_.interrupt_file.c_str(), &file) == 0 ? static_cast<size_t>(file.st_size) : 0;
  }

  const Run& run_;
  pid_t child_;
  Pipe& in_;
  Pipe& out_;
  Pipe& err_;
  size_t n_fed_ = 0;
  bool acted_ = false;
  Clock::time_point start_ = Clock::now();
  Clock::time_point event_ = start_;
};

}  // namespace

Outcome run_process(const Run& run) {
  ::signal(SIGPIPE, SIG_IGN);
  Pipe in, out, err;
  const sigset_t stopping = stopping_signals();
  ::sigprocmask(SIG_BLOCK, &stopping, nullptr);  // until the child has its own handling of them
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error(std::string("fork: ") + std::strerror(errno));
  if (child == 0) {
    const int to = run.stdout_path.empty() ? out.write_end.get()
                                           : ::open(run.stdout_path.c_str(), O_WRONLY | O_CREAT, 0600);
    become(run, in.read_end.get(), to, err.write_end.get());
  }
  ::sigprocmask(SIG_UNBLOCK, &stopping, nullptr);
  in.read_end.close();
  out.write_end.close();
  err.write_end.close();
  Outcome outcome;
  Conversation conversation(run, child, in, out, err);
  conversation.hold(outcome);
  int status = 0;
  ::waitpid(child, &status, 0);
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  outcome.seconds_after_event = seconds_since(conversation.event());
  return outcome;
}

}  // namespace minfer::test
