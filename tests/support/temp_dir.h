// A folder of its own for a test, removed with everything in it.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace minfer::test {

class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::string path(const std::string& name) const { return (path_ / name).string(); }
  // Writes a file into the folder and returns its path.
  std::filesystem::path write(const std::string& name, std::span<const std::byte> bytes) const;
  std::filesystem::path write(const std::string& name, std::string_view text) const;

 private:
  std::filesystem::path path_;
};

void write_file(const std::string& path, std::string_view bytes);

}  // namespace minfer::test
