// Models split over several files: NAME-00001-of-0000N.gguf and so on, each with the keys split.no (from 0),
// split.count and split.tensors.count.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "gguf/metadata.h"

namespace minfer::gguf {

struct Split {
  uint64_t no = 0;                    // of this shard, from 0
  uint64_t count = 1;                 // shards of the model
  std::optional<uint64_t> n_tensors;  // in all shards together, where the file says so
};

// The split of the file with these keys; one shard of one where it says nothing. Throws Error where no >=
// count.
Split read_split(const Metadata& metadata, const std::string& file_name);

// Throws Error unless the file is the first shard; the message names the file to give instead.
void require_first(const Split& split, const std::filesystem::path& path);

// Beside `first`, the path of the shard `no` (from 0). Throws Error where the name of `first` does not end in
// -00001-of-0000N.gguf, so that the rest cannot be found.
std::filesystem::path shard_path(const std::filesystem::path& first, const Split& split, uint64_t no);

// Throws Error where the file cannot be shard `no` of the model that begins with `first`.
void require_sibling(const Metadata& first, const Split& first_split, const Metadata& other, uint64_t no,
                     const std::string& file_name);

}  // namespace minfer::gguf
