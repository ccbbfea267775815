#include "gguf/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "gguf/error.h"

namespace minfer::gguf {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

[[noreturn]] void fail(const std::filesystem::path& path, const char* call, int code) {
  throw Error(printable(path.string()) + ": " + call + ": " + std::generic_category().message(code));
}

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) {
  // Opening a FIFO without a writer would wait for one; O_NONBLOCK does nothing to regular files.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (file.get() < 0) fail(path, "cannot open", errno);
  struct stat status = {};
  if (::fstat(file.get(), &status) != 0) fail(path, "cannot stat", errno);
  if (S_ISDIR(status.st_mode)) fail(path, "cannot read", EISDIR);
  if (!S_ISREG(status.st_mode)) {
    throw Error(printable(path.string()) +
                ": not a regular file (a model is mapped into memory, not streamed)");
  }
  size_ = static_cast<size_t>(status.st_size);
  if (size_ == 0) return;
  void* mapped = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (mapped == MAP_FAILED) fail(path, "cannot map", errno);
  data_ = static_cast<const std::byte*>(mapped);
}

MappedFile::~MappedFile() {
  if (data_) ::munmap(const_cast<std::byte*>(data_), size_);
}

void MappedFile::prefetch() const {
  if (data_) ::madvise(const_cast<std::byte*>(data_), size_, MADV_WILLNEED);
}

}  // namespace minfer::gguf
