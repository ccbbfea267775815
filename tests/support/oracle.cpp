#include "tests/support/oracle.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace minfer::test {
namespace {

namespace fs = std::filesystem;

std::string env(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

bool oracle_required() {
  return env("MINFER_REQUIRE_ORACLE") == "1";
}

std::vector<fs::path> split_colons(const std::string& list) {
  std::vector<fs::path> folders;
  std::istringstream in(list);
  for (std::string folder; std::getline(in, folder, ':');) {
    if (!folder.empty()) folders.emplace_back(folder);
  }
  return folders;
}

fs::path oracle_dir() {
  if (const std::string dir = env("MINFER_ORACLE_DIR"); !dir.empty()) return dir;
  const fs::path source = MINFER_SOURCE_DIR;
  const fs::path beside = source / "../shared/oracle";
  return fs::exists(beside) ? beside : source / "tests/data";
}

std::vector<fs::path> model_dirs() {
  const std::string dirs = env("MINFER_MODEL_DIR");
  if (!dirs.empty()) return split_colons(dirs);
  const fs::path source = MINFER_SOURCE_DIR;
  return {source / "models", source / "../shared/models"};
}

std::string letters_and_digits(const std::string& name) {
  std::string kept;
  for (const unsigned char c : name) {
    if (std::isalnum(c)) kept += static_cast<char>(std::tolower(c));
  }
  return kept;
}

}  // namespace

std::vector<fs::path> oracle_files(const std::string& kind, const std::string& suffix) {
  std::vector<fs::path> files;
  const fs::path folder = oracle_dir() / kind;
  if (fs::is_directory(folder)) {
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (entry.path().filename().string().ends_with(suffix)) files.push_back(entry.path());
    }
  }
  if (files.empty() && oracle_required()) {
    throw std::runtime_error("MINFER_REQUIRE_ORACLE=1, but no *" + suffix + " in " + folder.string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::optional<fs::path> find_model(const std::string& file_name) {
  for (const fs::path& folder : model_dirs()) {
    if (fs::exists(folder / file_name)) return folder / file_name;
  }
  if (oracle_required()) throw std::runtime_error("MINFER_REQUIRE_ORACLE=1, but no model " + file_name);
  return std::nullopt;
}

std::optional<fs::path> find_model_like(const std::string& name) {
  std::vector<fs::path> found;
  for (const fs::path& folder : model_dirs()) {
    if (!fs::is_directory(folder)) continue;
    for (const auto& entry : fs::directory_iterator(folder)) {
      const bool is_gguf = entry.path().extension() == ".gguf";
      const std::string file_name = letters_and_digits(entry.path().filename().string());
      if (is_gguf && file_name.starts_with(letters_and_digits(name))) found.push_back(entry.path());
    }
  }
  if (!found.empty()) return *std::min_element(found.begin(), found.end());
  if (oracle_required()) throw std::runtime_error("MINFER_REQUIRE_ORACLE=1, but no model like " + name);
  return std::nullopt;
}

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path.string());
  std::ostringstream out;
  out << in.rdbuf();
  return std::move(out).str();
}

}  // namespace minfer::test
