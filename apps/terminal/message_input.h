// When Enter sends a message, and when it goes on in a further line.
#pragma once

#include <string>

namespace minfer {

// A backslash at the end continues; three quotes at the beginning of what is typed open a block, in which
// Enter begins a new line until three quotes end one.
class MessageInput {
 public:
  // Enter behind `text`. True: it is the whole message, without the quotes of a block. False: it goes on,
  // with what continued it replaced by a newline.
  bool enter(std::string& text);

 private:
  bool in_block_ = false;
};

}  // namespace minfer
