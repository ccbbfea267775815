// Holds back an incomplete UTF-8 character at the end of a byte stream, and nothing else.
#pragma once

#include <string>
#include <string_view>

namespace minfer {

class Utf8Stream {
 public:
  // Appends bytes; returns all that is ready: everything but a trailing prefix of a character that may still be
  // completed (at most 3 bytes). Bytes that can never become a character are passed through as they are.
  std::string push(std::string_view bytes);
  // What was held back, as it is.
  std::string finish();

 private:
  std::string pending_;
};

}  // namespace minfer
