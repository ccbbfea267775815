// Reads what a user types, a message at a time.
#pragma once

#include <memory>
#include <string>

#include "core/cancel.h"

namespace minfer {

struct Typed {
  enum class Kind {
    kMessage,
    kInterrupted,  // Ctrl-C, nothing typed
    kEnd,          // Ctrl-D, nothing typed
  };
  Kind kind = Kind::kEnd;
  std::string text;
};

class LineReader {
 public:
  virtual ~LineReader() = default;
  // SIGINT while it reads is a Ctrl-C. Throws Error(kInterrupted) where the process is to end.
  virtual Typed read(AnswerScope& scope) = 0;
};

// For standard input and output, which are terminals: a line editor, or, where TERM says that the terminal
// can do no more, whole lines as the system edits them. What is typed before the first read() is kept for it.
std::unique_ptr<LineReader> make_line_reader();

}  // namespace minfer
