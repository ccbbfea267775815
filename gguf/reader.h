// A GGUF model opened for reading: typed metadata and a tensor directory whose data are views into the mapped
// file(s).
#pragma once

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
#include "gguf/tensor.h"

namespace minfer::gguf {

class MappedFile;
struct Split;

class Reader {
 public:
  // Maps `path`; where it is the first of a split model, finds and maps the rest. Throws Error, one line that
  // names the file, for anything that is not a whole, well-formed GGUF model. Bytes behind the last tensor do
  // no harm unless they are another GGUF file; tensor types that minfer cannot decode are left for whoever
  // loads the tensor to refuse.
  static Reader open(const std::filesystem::path& path);
  // The same from memory, which must outlive the Reader. `name` stands for the file in messages. Several
  // parts are the shards of one split model, in order.
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
  // Asks the system to start reading the whole model into its cache: for whoever is about to load every
  // tensor.
  void prefetch() const;

 private:
  Reader();
  // Shard `no` (from 0) of the model. The first brings the metadata and the split that the others are held
  // against.
  void add_shard(std::span<const std::byte> bytes, const std::string& shard_name, uint64_t no);
  void add_tensors(std::vector<Tensor> tensors, const std::string& shard_name);
  void require_all_tensors() const;

  std::string name_;
  uint32_t version_ = 0;
  uint64_t file_bytes_ = 0;
  size_t n_shards_ = 0;
  std::unique_ptr<Split> split_;
  std::vector<std::unique_ptr<MappedFile>> files_;
  Metadata metadata_;
  std::vector<Tensor> tensors_;
  std::unordered_map<std::string_view, size_t> index_;
};

}  // namespace minfer::gguf
