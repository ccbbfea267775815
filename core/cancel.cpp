#include "core/cancel.h"

#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <system_error>

#include "core/error.h"

namespace minfer {
namespace {

// What handlers touch: any thread may run one, at any time, several at once.
std::atomic<bool> g_end_asked{false};     // the process is to end
std::atomic<bool> g_answer_asked{false};  // ... or only the answer
std::atomic<bool> g_in_answer{false};
std::atomic<void (*)()> g_restore{nullptr};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<void (*)()>::is_always_lock_free);

timer_t g_deadline;

// timer_settime, unlike setitimer, is on POSIX's list of what a handler may call.
void start_deadline(double seconds) {
  itimerspec when{};
  when.it_value.tv_nsec = static_cast<long>(seconds * 1e9);
  timer_settime(g_deadline, 0, &when, nullptr);
}

// A terminal that takes nothing may hold the hook up; a second deadline then finds no hook.
void force_exit() {
  if (auto* const restore = g_restore.exchange(nullptr)) {
    start_deadline(0.1);
    restore();
  }
  std::_Exit(static_cast<int>(ExitCode::kInterrupted));
}

extern "C" void on_signal(int signal) {
  const int error = errno;
  if (signal == SIGALRM) force_exit();
  if (signal == SIGINT && g_in_answer && !g_end_asked) {
    if (g_answer_asked.exchange(true)) force_exit();
  } else {
    if (g_end_asked.exchange(true)) force_exit();
    start_deadline(kGraceSeconds);
  }
  errno = error;
}

void handle(int signal) {
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_NODEFER;  // a deadline within a deadline; no SA_RESTART: a read must return
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, nullptr);
}

}  // namespace

void install_signal_handlers() {
  std::signal(SIGPIPE, SIG_IGN);
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGALRM;
  if (timer_create(CLOCK_MONOTONIC, &event, &g_deadline) != 0) {
    throw std::system_error(errno, std::generic_category(), "timer_create");
  }
  handle(SIGALRM);
  sigset_t deadline;
  sigemptyset(&deadline);
  sigaddset(&deadline, SIGALRM);
  pthread_sigmask(SIG_UNBLOCK, &deadline, nullptr);  // a parent's mask is inherited

  handle(SIGINT);  // even where it was ignored, as a shell does for its background jobs: `kill -INT` is meant
  handle(SIGTERM);
  struct sigaction hang_up {};
  sigaction(SIGHUP, nullptr, &hang_up);
  if (hang_up.sa_handler != SIG_IGN) handle(SIGHUP);  // nohup ignores it for good reason
}

bool interrupted() {
  return g_end_asked.load(std::memory_order_relaxed) || g_answer_asked.load(std::memory_order_relaxed);
}

void throw_if_interrupted() {
  if (interrupted()) throw Error(ExitCode::kInterrupted, "interrupted");
}

AnswerScope::AnswerScope() {
  g_answer_asked = false;
  g_in_answer = true;
}

AnswerScope::~AnswerScope() {
  g_in_answer = false;
  g_answer_asked = false;
}

void AnswerScope::clear() {
  g_answer_asked = false;
}

void at_forced_exit(void (*restore)()) {
  g_restore = restore;
}

}  // namespace minfer
