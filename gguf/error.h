// The one exception of gguf/: a file that cannot be used. The message is one line and names the file and the
// place.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace minfer::gguf {

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// `text` from a file, made fit for a one-line message: control bytes and quotes as \xNN, cut after 96 bytes.
std::string printable(std::string_view text);
// The same in single quotes.
std::string quoted(std::string_view text);

}  // namespace minfer::gguf
