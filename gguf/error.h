// The one exception of gguf/: a file that cannot be used. The message is one line and names the file and the place.
#pragma once

#include <stdexcept>
#include <string>

namespace minfer::gguf {

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace minfer::gguf
