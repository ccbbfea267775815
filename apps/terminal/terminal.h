// The terminal of standard input and output in a mode of our own, put back however the process ends (but for
// SIGKILL).
#pragma once

#include <string>
#include <string_view>

namespace minfer {

class Terminal {
 public:
  // Whether TERM names one that can move its cursor.
  static bool is_capable();

  // Takes over the terminal, in answer_mode(). Throws Error(kRuntime) where it cannot be. One at a time.
  Terminal();
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  // Keys are neither shown nor collected into lines; a newline that is written begins a line. While an answer
  // is written Ctrl-C is a signal; while a message is edited it is a key like the others. What was typed in
  // between is kept.
  void answer_mode();
  void edit_mode();

  struct Size {
    int rows, columns;  // at least 1
  };
  Size size() const;

  enum class Event { kInput, kResize, kSignal, kTimeout, kEnd };
  // timeout_ms -1: none. kSignal: some other signal was handled.
  Event wait(int timeout_ms);
  // What is there, after Event::kInput; empty at the end of the input.
  std::string read();
  // Throws Error(kRuntime) with the system's reason.
  void write(std::string_view bytes);

  // Stops the process as Ctrl-Z does, the terminal put back meanwhile.
  void suspend();

 private:
  void set_mode(bool signals);
};

}  // namespace minfer
