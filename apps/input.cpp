#include "apps/input.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/cancel.h"
#include "core/error.h"

namespace minfer {
namespace {

std::string read_all(int fd, const std::string& name) {
  std::string bytes;
  char buffer[1 << 16];
  for (;;) {
    const ssize_t n = ::read(fd, buffer, sizeof buffer);
    if (n > 0) {
      bytes.append(buffer, static_cast<size_t>(n));
    } else if (n == 0) {
      return bytes;
    } else if (errno == EINTR) {
      throw_if_interrupted();
    } else {
      throw Error(ExitCode::kUsage, name + ": " + std::strerror(errno));
    }
  }
}

}  // namespace

std::string read_input(const std::string& flag, const std::string& path) {
  if (path == "-") {
    spdlog::debug("{}: reading standard input", flag);
    return read_all(STDIN_FILENO, "standard input");
  }
  const std::string name = flag + " " + path;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) throw Error(ExitCode::kUsage, name + ": " + std::strerror(errno));
  try {
    std::string bytes = read_all(fd, name);
    ::close(fd);
    return bytes;
  } catch (...) {
    ::close(fd);
    throw;
  }
}

std::string read_prompt(const Options& options) {
  std::string prompt;
  if (options.prompt_file) {
    prompt = read_input("-f", *options.prompt_file);
  } else if (*options.prompt == "-") {
    prompt = read_input("-p", "-");
  } else {
    prompt = *options.prompt;
  }
  if (prompt.empty()) {
    const std::string source = options.prompt_file      ? "-f " + *options.prompt_file
                               : *options.prompt == "-" ? "-p -"
                                                        : "-p";
    throw Error(ExitCode::kUsage, source + ": the prompt is empty");
  }
  return prompt;
}

}  // namespace minfer
