#include "apps/input.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "apps/escape.h"
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

void trim_newline(std::string& text) {
  if (!text.ends_with('\n')) return;
  text.resize(text.size() - (text.ends_with("\r\n") ? 2 : 1));
}

}  // namespace

std::string read_input(const std::string& flag, const std::string& path) {
  if (path == "-") {
    spdlog::debug("{}: reading standard input", flag);
    return read_all(STDIN_FILENO, "standard input");
  }
  const std::string name = flag + " " + path;
  spdlog::debug("{}: reading {}", flag, path);
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    const int error = errno;
    throw_if_interrupted();  // a pipe by name opens once somebody writes
    throw Error(ExitCode::kUsage, name + ": " + std::strerror(error));
  }
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
  const bool by_file = options.prompt_file.has_value();
  if (!by_file && *options.prompt != "-") {
    if (options.prompt->empty()) throw Error(ExitCode::kUsage, "-p: the prompt is empty");
    return options.escape ? read_escapes(*options.prompt) : *options.prompt;
  }
  const std::string flag = by_file ? "-f" : "-p", path = by_file ? *options.prompt_file : "-";
  std::string prompt = read_input(flag, path);
  if (options.trim_newline) trim_newline(prompt);
  if (prompt.empty()) throw Error(ExitCode::kUsage, flag + " " + path + ": the prompt is empty");
  return prompt;
}

}  // namespace minfer
