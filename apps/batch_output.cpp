#include "apps/batch_output.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "apps/input.h"
#include "apps/output.h"
#include "core/cancel.h"
#include "core/error.h"

namespace minfer {
namespace {

int open_output(const std::string& path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (fd >= 0) return fd;
  const int error = errno;
  throw_if_interrupted();  // a pipe by name opens once somebody reads
  throw Error(ExitCode::kUsage, "--output " + path + ": " + std::strerror(error));
}

bool is_input(const struct stat& output, const std::string& input) {
  struct stat file {};
  if ((input == "-" ? ::fstat(STDIN_FILENO, &file) : ::stat(input.c_str(), &file)) != 0) return false;
  return file.st_dev == output.st_dev && file.st_ino == output.st_ino;
}

}  // namespace

BatchOutput::BatchOutput(const BatchFlags& flags) : name_("standard output"), fd_(STDOUT_FILENO) {
  if (flags.output == "-") return;
  name_ = "--output " + flags.output;
  fd_ = open_output(flags.output);
  try {
    take_file(flags);
  } catch (...) {
    ::close(fd_);
    throw;
  }
}

BatchOutput::~BatchOutput() {
  if (fd_ != STDOUT_FILENO) ::close(fd_);
}

void BatchOutput::refuse(const std::string& why) const {
  throw Error(ExitCode::kUsage, name_ + ": " + why);
}

void BatchOutput::take_file(const BatchFlags& flags) {
  struct stat file {};
  if (::fstat(fd_, &file) != 0) refuse(std::strerror(errno));
  if (!S_ISREG(file.st_mode)) {
    if (flags.resume) refuse("not a file, there is nothing to --resume from");
    return;
  }
  if (is_input(file, flags.input)) refuse("is the input");
  if (::flock(fd_, LOCK_EX | LOCK_NB) != 0) {
    refuse(errno == EWOULDBLOCK ? "another run is writing to it" : std::strerror(errno));
  }
  if (::fstat(fd_, &file) != 0) refuse(std::strerror(errno));  // again: the lock's last owner has written
  if (file.st_size > 0 && !flags.resume) {
    refuse("holds " + std::to_string(file.st_size) + " bytes already; --resume goes on from there");
  }
  if (flags.resume) found_ = read_input("--output", flags.output);
}

void BatchOutput::keep(size_t n_bytes) {
  if (fd_ == STDOUT_FILENO) return;
  const auto size = static_cast<off_t>(n_bytes);
  if (n_bytes < found_.size() && ::ftruncate(fd_, size) != 0) refuse(std::strerror(errno));
  if (n_bytes > 0 && ::lseek(fd_, size, SEEK_SET) < 0) refuse(std::strerror(errno));
  found_.clear();
  found_.shrink_to_fit();
}

void BatchOutput::append(std::string_view record) {
  write_all(fd_, record, name_);
}

void OrderedRecords::put(size_t index, std::string record) {
  waiting_[index] = std::move(record);
  while (n_written_ < waiting_.size() && waiting_[n_written_]) {
    output_.append(*waiting_[n_written_]);
    waiting_[n_written_++].reset();
  }
}

}  // namespace minfer
