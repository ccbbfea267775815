// SIGINT, SIGTERM and SIGHUP as a question: the work in progress looks whether it was asked to stop and ends
// in good order; where it does not look in time, the process ends all the same.
#pragma once

namespace minfer {

// The first signal asks. kGraceSeconds later, or with a second signal, the process ends at once, with exit
// code 130 and whatever was written by then: out of a driver call that never returns too. The rest of the
// second that users are promised is the system's, to take back gigabytes of memory. Blocking reads return
// (EINTR). Also turns a closed pipe into a failed write. To be called once, first thing in main().
inline constexpr double kGraceSeconds = 0.6;
void install_signal_handlers();

bool interrupted();

// Throws Error(kInterrupted) where interrupted().
void throw_if_interrupted();

// While one lives, SIGINT asks for the end of an answer and not of the process: interrupted() holds until
// clear(), and no deadline starts. A second SIGINT before that ends the process; so do SIGTERM and SIGHUP, as
// ever. One at a time.
class AnswerScope {
 public:
  AnswerScope();
  ~AnswerScope();
  AnswerScope(const AnswerScope&) = delete;
  AnswerScope& operator=(const AnswerScope&) = delete;

  // The answer has stopped. interrupted() still holds afterwards where the process is to end.
  void clear();
};

// Called inside a signal handler just before the process ends without unwinding: async-signal-safe functions
// only (tcsetattr is one). It may take a tenth of a second. nullptr: nothing.
void at_forced_exit(void (*restore)());

}  // namespace minfer
