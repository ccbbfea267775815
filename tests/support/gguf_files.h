// Small GGUF files for tests, built in memory.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "gguf/writer.h"

namespace minfer::test {

using Bytes = std::vector<std::byte>;

Bytes bytes_of(std::string_view text);
std::string_view text_of(std::span<const std::byte> bytes);

// What Reader::from_bytes throws for `file`, which is named "f.gguf"; empty where it throws nothing. The file
// is read from a block of exactly its size.
std::string read_error(std::span<const std::byte> file);

// Checks that `message` is one line and holds `part`.
void check_message(const std::string& message, const std::string& part);

// A valid file with every value type as a scalar and as an array, strings, nested arrays and four tensors
// (f32 [4, 2], f16 [3], q4_0 [32, 2, 1, 2], q6_K [256]).
Bytes every_type_file(uint32_t version = gguf::kMaxVersion, uint32_t alignment = gguf::kDefaultAlignment);

// A file with the one f32 tensor "t" [8] after whatever `fill` adds.
Bytes file_with(const std::function<void(gguf::Writer&)>& fill);

// One shard of a split model: its keys, and the f32 tensors `tensors` of 8 values each, which count up from
// 0.
struct Shard {
  int no = 0;
  int count = 1;
  int n_tensors = 0;  // of all shards
  std::vector<std::string> tensors;
};
Bytes shard_file(const Shard& shard);
// A model of three shards with the tensors a, b | c | d, e.
std::vector<Bytes> three_shards();

// Where `needle` stands in `file` for the last time. Throws where it does not.
size_t last_position(std::span<const std::byte> file, std::string_view needle);
// Overwrites the bytes at `at` with `value`.
template <typename T>
void patch(Bytes& file, size_t at, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) file.at(at + i) = reinterpret_cast<const std::byte*>(&value)[i];
}

}  // namespace minfer::test
