// A file mapped into memory, read-only.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace minfer::gguf {

// The mapping is private and lives as long as the object; the file itself is closed at once. Its size is
// taken when it is opened: one that is cut short afterwards ends the process with SIGBUS, as with every
// mapping.
class MappedFile {
 public:
  // Throws Error, with the system's reason, for what is absent, unreadable, a directory or no regular file.
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const {
    return {data_, size_};
  }  // page-aligned; empty for an empty file
  // Asks the system to start reading the whole file into its cache. Only a hint: failure means nothing.
  void prefetch() const;

 private:
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace minfer::gguf
