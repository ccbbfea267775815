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

// `text`, a path for one, made fit for a one-line message: control bytes as \xNN.
std::string printable(std::string_view text);
// The same for text out of a file: in single quotes, cut after 96 bytes.
std::string quoted(std::string_view text);

}  // namespace minfer::gguf
