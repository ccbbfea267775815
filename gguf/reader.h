// A GGUF model opened for reading: typed metadata and a tensor directory whose data are views into the mapped file(s).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "gguf/blocks.h"
#include "gguf/error.h"
#include "gguf/metadata.h"

namespace minfer::gguf {

class MappedFile;

struct Tensor {
  std::string_view name;
  TensorType type = TensorType::kF32;
  uint32_t n_dims = 0;
  std::array<uint64_t, kMaxDims> dims{1, 1, 1, 1};  // dims[0] is contiguous
  std::span<const std::byte> data;                  // rows of row_bytes() each, in file memory

  uint64_t n_elements() const { return dims[0] * dims[1] * dims[2] * dims[3]; }  // checked against overflow on reading
  uint64_t n_rows() const { return dims[1] * dims[2] * dims[3]; }
  uint64_t row_bytes() const { return data.size() / (n_rows() ? n_rows() : 1); }
};

class Reader {
 public:
  // Maps `path`; where it is the first of a split model, finds and maps the rest. Throws Error, one line that names
  // the file, for anything that is not a whole, well-formed GGUF model.
  static Reader open(const std::filesystem::path& path);
  // The same from memory, which must outlive the Reader. `name` stands for the file in messages. Several parts are
  // the shards of one split model, in order.
  static Reader from_bytes(std::span<const std::byte> bytes, std::string name = "<memory>");
  static Reader from_parts(std::span<const std::span<const std::byte>> parts, std::string name = "<memory>");

  Reader(Reader&&) noexcept;
  Reader& operator=(Reader&&) noexcept;
  ~Reader();

  const std::string& name() const { return name_; }  // the path as given
  uint32_t version() const { return version_; }
  uint64_t file_bytes() const { return file_bytes_; }  // of all shards together
  size_t n_shards() const { return n_shards_; }
  const Metadata& metadata() const { return metadata_; }
  const std::vector<Tensor>& tensors() const { return tensors_; }  // in file order, shard after shard
  const Tensor* find(std::string_view tensor_name) const;          // null where there is none

 private:
  Reader();
  void add_shard(std::span<const std::byte> bytes, const std::string& shard_name);

  std::string name_;
  uint32_t version_ = 0;
  uint64_t file_bytes_ = 0;
  size_t n_shards_ = 0;
  std::vector<std::unique_ptr<MappedFile>> files_;
  Metadata metadata_;
  std::vector<Tensor> tensors_;
  std::unordered_map<std::string_view, size_t> index_;
};

}  // namespace minfer::gguf
