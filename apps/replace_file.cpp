#include "apps/replace_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "apps/output.h"
#include "core/error.h"

namespace minfer {
namespace {

Error failure(const std::string& path) {
  return {ExitCode::kRuntime, path + ": " + std::strerror(errno)};
}

// A device, a pipe or a link would be gone for a file in its place.
bool exists_as_file(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return false;
  if (!S_ISREG(status.st_mode)) throw Error(ExitCode::kRuntime, path + ": is there, and is not a plain file");
  return true;
}

}  // namespace

bool replace_file(const std::string& path, std::string_view bytes) {
  const bool existed = exists_as_file(path);
  const std::string temporary = path + ".tmp" + std::to_string(::getpid());
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) throw failure(path);
  try {
    write_all(fd, bytes, path);
    if (::fsync(fd) != 0) throw failure(path);
    if (std::rename(temporary.c_str(), path.c_str()) != 0) throw failure(path);
    ::close(fd);
    return existed;
  } catch (...) {
    ::close(fd);
    ::unlink(temporary.c_str());
    throw;
  }
}

}  // namespace minfer
