#include "apps/terminal/line_reader.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>

#include "apps/output.h"
#include "apps/terminal/line_editor.h"
#include "apps/terminal/message_input.h"

namespace minfer {
namespace {

// Lines as the terminal hands them over, which echoes and edits them itself.
class PlainReader final : public LineReader {
 public:
  Typed read(AnswerScope& scope) override {
    MessageInput input;
    std::string text;
    const char* prompt = "> ";
    for (;;) {
      write_stdout(prompt);
      switch (read_line(scope, text)) {
        case Line::kWhole:
          break;
        case Line::kEnd:
          write_stdout("\n");
          if (text.empty()) return {};
          return {Typed::Kind::kMessage, text};
        case Line::kInterrupted:
          write_stdout("\n");
          return {Typed::Kind::kInterrupted, {}};
      }
      if (input.enter(text)) return {Typed::Kind::kMessage, text};
      prompt = "  ";
    }
  }

 private:
  enum class Line { kWhole, kInterrupted, kEnd };

  // A signal may come just before the read begins, which then would not return: so it waits in steps.
  static Line read_line(AnswerScope& scope, std::string& text) {
    constexpr int kStepMs = 200;
    for (;;) {
      pollfd input{STDIN_FILENO, POLLIN, 0};
      const int n_ready = ::poll(&input, 1, kStepMs);
      if (interrupted()) {
        scope.clear();
        throw_if_interrupted();
        return Line::kInterrupted;
      }
      if (n_ready <= 0) continue;
      char byte = 0;
      const ssize_t n = ::read(STDIN_FILENO, &byte, 1);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return Line::kEnd;
      if (byte == '\n') return Line::kWhole;
      text += byte;
    }
  }
};

}  // namespace

std::unique_ptr<LineReader> make_line_reader() {
  if (Terminal::is_capable()) return std::make_unique<LineEditor>();
  return std::make_unique<PlainReader>();
}

}  // namespace minfer
