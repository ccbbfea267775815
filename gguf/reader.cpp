#include "gguf/reader.h"

#include <utility>

#include "gguf/directory.h"
#include "gguf/file_kind.h"
#include "gguf/mapped_file.h"
#include "gguf/shards.h"

namespace minfer::gguf {

Reader::Reader() = default;
Reader::Reader(Reader&&) noexcept = default;
Reader& Reader::operator=(Reader&&) noexcept = default;
Reader::~Reader() = default;

Reader Reader::open(const std::filesystem::path& path) {
  Reader reader;
  reader.name_ = path.string();
  reader.files_.push_back(std::make_unique<MappedFile>(path));
  reader.add_shard(reader.files_.front()->bytes(), path.string(), 0);
  for (uint64_t no = 1; no < reader.split_->count; ++no) {
    const std::filesystem::path shard = shard_path(path, *reader.split_, no);
    try {
      reader.files_.push_back(std::make_unique<MappedFile>(shard));
    } catch (const Error& e) {
      throw Error(std::string(e.what()) + " (shard " + std::to_string(no + 1) + " of " +
                  std::to_string(reader.split_->count) + " of " + printable(path.string()) + ")");
    }
    reader.add_shard(reader.files_.back()->bytes(), shard.string(), no);
  }
  reader.require_all_tensors();
  return reader;
}

Reader Reader::from_bytes(std::span<const std::byte> bytes, std::string name) {
  return from_parts({&bytes, 1}, std::move(name));
}

Reader Reader::from_parts(std::span<const std::span<const std::byte>> parts, std::string name) {
  Reader reader;
  reader.name_ = std::move(name);
  if (parts.empty()) throw Error(printable(reader.name_) + ": no parts given");
  for (size_t no = 0; no < parts.size(); ++no) {
    const std::string part = " (part " + std::to_string(no + 1) + " of " + std::to_string(parts.size()) + ")";
    reader.add_shard(parts[no], parts.size() == 1 ? reader.name_ : reader.name_ + part, no);
    if (reader.split_->count != parts.size()) {
      throw Error(printable(reader.name_) + ": a model split into " + std::to_string(reader.split_->count) +
                  " shards, but " + std::to_string(parts.size()) + " given");
    }
  }
  reader.require_all_tensors();
  return reader;
}

const Tensor* Reader::find(std::string_view tensor_name) const {
  const auto found = index_.find(tensor_name);
  return found == index_.end() ? nullptr : &tensors_[found->second];
}

void Reader::prefetch() const {
  for (const auto& file : files_) file->prefetch();
}

void Reader::add_shard(std::span<const std::byte> bytes, const std::string& shard_name, uint64_t no) {
  Directory directory = read_directory(bytes, shard_name);
  if (no == 0) {
    require_model(directory.metadata, shard_name);
    split_ = std::make_unique<Split>(read_split(directory.metadata, shard_name));
    require_first(*split_, shard_name);
    version_ = directory.version;
    metadata_ = std::move(directory.metadata);
  } else {
    require_sibling(metadata_, *split_, directory.metadata, no, shard_name);
  }
  add_tensors(std::move(directory.tensors), shard_name);
  file_bytes_ += bytes.size();
  ++n_shards_;
}

void Reader::add_tensors(std::vector<Tensor> tensors, const std::string& shard_name) {
  for (const Tensor& tensor : tensors) {
    if (index_.emplace(tensor.name, index_.size()).second) continue;
    throw Error(printable(shard_name) + ": tensor " + quoted(tensor.name) +
                " stands in an earlier shard too");
  }
  if (tensors_.empty()) {
    tensors_ = std::move(tensors);
  } else {
    tensors_.insert(tensors_.end(), tensors.begin(), tensors.end());
  }
}

void Reader::require_all_tensors() const {
  if (!split_->n_tensors || *split_->n_tensors == tensors_.size()) return;
  throw Error(printable(name_) + ": its " + std::to_string(n_shards_) + " shards hold " +
              std::to_string(tensors_.size()) + " tensors, but split.tensors.count is " +
              std::to_string(*split_->n_tensors));
}

}  // namespace minfer::gguf
