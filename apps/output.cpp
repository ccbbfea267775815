#include "apps/output.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/error.h"

namespace minfer {

void write_all(int fd, std::string_view bytes, const std::string& name) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN) {  // whoever shares it made it non-blocking
        pollfd writable{.fd = fd, .events = POLLOUT, .revents = 0};
        ::poll(&writable, 1, -1);
        continue;
      }
      throw Error(ExitCode::kRuntime, name + ": " + std::strerror(errno));
    }
    bytes.remove_prefix(static_cast<size_t>(n));
  }
}

void write_stdout(std::string_view bytes) {
  write_all(STDOUT_FILENO, bytes, "standard output");
}

}  // namespace minfer
