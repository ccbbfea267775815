// The exception of core/ and apps/, which carries the process's exit code. The message is one line.
#pragma once

#include <stdexcept>
#include <string>

namespace minfer {

enum class ExitCode : int {
  kOk = 0,
  kRuntime = 1,      // anything that went wrong while running
  kUsage = 2,        // flags, prompts
  kModelFile = 3,    // the model file: absent, malformed, unsupported
  kDevice = 4,       // no such device, or not enough memory
  kInterrupted = 130,
};

class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

}  // namespace minfer
