#include "gguf/directory.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <unordered_set>

#include "gguf/cursor.h"
#include "gguf/error.h"
#include "gguf/file_kind.h"

namespace minfer::gguf {
namespace {

constexpr uint64_t kMaxU64 = std::numeric_limits<uint64_t>::max();
// The smallest that can stand in a file: an empty key would be 13 bytes with a u8, an empty name 32 with one
// dim.
constexpr uint64_t kMinKeyBytes = sizeof(uint64_t) + 1 + sizeof(uint32_t) + 1;
constexpr uint64_t kMinTensorBytes = sizeof(uint64_t) + 1 + 2 * sizeof(uint32_t) + 2 * sizeof(uint64_t);
constexpr uint64_t kMinArrayBytes = sizeof(uint32_t) + sizeof(uint64_t);

uint64_t align_up(uint64_t n, uint64_t alignment) {
  return (n + alignment - 1) & ~(alignment - 1);
}

void require_bools(const Cursor& in, std::span<const std::byte> bytes) {
  const auto bad = std::find_if(bytes.begin(), bytes.end(), [](std::byte b) { return b > std::byte{1}; });
  if (bad != bytes.end())
    in.fail("a bool is " + std::to_string(std::to_integer<int>(*bad)) + ", wanted 0 or 1");
}

Value read_array(Cursor& in, int depth) {
  const auto type = static_cast<ValueType>(in.read<uint32_t>("array type"));
  const auto n = in.read<uint64_t>("array length");
  if (const size_t size = scalar_size(type)) {
    in.require_room(n, size, "array elements");
    const auto bytes = in.take(n * size, "array");
    if (type == ValueType::kBool) require_bools(in, bytes);
    return ScalarArray{.type = type, .n = n, .bytes = bytes};
  }
  if (type == ValueType::kString) {
    in.require_room(n, sizeof(uint64_t), "strings");
    const StringArray strings(in.here(), n);
    for (uint64_t i = 0; i < n; ++i) in.read_string("strings");
    return strings;
  }
  if (type == ValueType::kArray) {
    if (depth == kMaxArrayDepth) {
      in.fail("arrays nested more than " + std::to_string(kMaxArrayDepth) + " deep");
    }
    in.require_room(n, kMinArrayBytes, "arrays");
    for (uint64_t i = 0; i < n; ++i) read_array(in, depth + 1);
    return NestedArray{.n = n};
  }
  in.fail("array element type " + std::to_string(static_cast<uint32_t>(type)) + " is no value type");
}

Value read_value(Cursor& in, ValueType type) {
  switch (type) {
    case ValueType::kU8:
      return uint64_t{in.read<uint8_t>("value")};
    case ValueType::kI8:
      return int64_t{in.read<int8_t>("value")};
    case ValueType::kU16:
      return uint64_t{in.read<uint16_t>("value")};
    case ValueType::kI16:
      return int64_t{in.read<int16_t>("value")};
    case ValueType::kU32:
      return uint64_t{in.read<uint32_t>("value")};
    case ValueType::kI32:
      return int64_t{in.read<int32_t>("value")};
    case ValueType::kU64:
      return in.read<uint64_t>("value");
    case ValueType::kI64:
      return in.read<int64_t>("value");
    case ValueType::kF32:
      return double{in.read<float>("value")};
    case ValueType::kF64:
      return in.read<double>("value");
    case ValueType::kBool: {
      const auto byte = in.take(1, "value");
      require_bools(in, byte);
      return byte[0] == std::byte{1};
    }
    case ValueType::kString:
      return in.read_string("value");
    case ValueType::kArray:
      return read_array(in, 1);
  }
  in.fail("value type " + std::to_string(static_cast<uint32_t>(type)) + " is no value type");
}

std::string_view read_name(Cursor& in, uint64_t max_bytes, const char* what) {
  const std::string_view name = in.read_string(what);
  if (name.empty()) in.fail(std::string("empty ") + what);
  if (name.size() > max_bytes) {
    in.fail(std::string(what) + " of " + std::to_string(name.size()) + " bytes, at most " +
            std::to_string(max_bytes) + " are allowed");
  }
  in.set_name(name);
  return name;
}

Metadata read_metadata(Cursor& in, uint64_t n_keys, const std::string& file_name) {
  Metadata metadata(file_name);
  metadata.reserve(n_keys);
  for (uint64_t i = 0; i < n_keys; ++i) {
    in.enter("key", i);
    const std::string_view key = read_name(in, kMaxKeyBytes, "key");
    const auto type = static_cast<ValueType>(in.read<uint32_t>("value type"));
    metadata.add({.key = key, .type = type, .value = read_value(in, type)});
  }
  return metadata;
}

uint32_t read_alignment(const Metadata& metadata, const std::string& file_name) {
  const uint64_t alignment = metadata.get_u64("general.alignment").value_or(kDefaultAlignment);
  if (!std::has_single_bit(alignment) || alignment > kMaxAlignment) {
    throw Error(printable(file_name) + ": general.alignment is " + std::to_string(alignment) +
                ", wanted a power of two up to " + std::to_string(kMaxAlignment));
  }
  return static_cast<uint32_t>(alignment);
}

struct Range {
  uint64_t begin = 0;  // from the start of the tensor data
  uint64_t size = 0;
  uint64_t end() const { return begin + size; }
};

// Bytes of a tensor with these dims and type, every product checked.
uint64_t tensor_bytes(const Cursor& in, const Tensor& tensor, const TypeInfo& info) {
  uint64_t n_elements = 1;
  for (uint32_t d = 0; d < tensor.n_dims; ++d) {
    if (tensor.dims[d] == 0) in.fail("dimension " + std::to_string(d) + " is 0");
    if (n_elements > kMaxU64 / tensor.dims[d]) in.fail("the product of its dimensions overflows");
    n_elements *= tensor.dims[d];
  }
  if (tensor.dims[0] % info.block_size != 0) {
    in.fail("rows of " + std::to_string(tensor.dims[0]) + " values are not whole blocks of " + info.name +
            " (" + std::to_string(info.block_size) + " values)");
  }
  const uint64_t n_blocks = n_elements / info.block_size;
  if (n_blocks > kMaxU64 / info.block_bytes) in.fail("its size in bytes overflows");
  return n_blocks * info.block_bytes;
}

Range read_tensor(Cursor& in, uint32_t alignment, Tensor& tensor) {
  tensor.name = read_name(in, kMaxTensorNameBytes, "tensor name");
  tensor.n_dims = in.read<uint32_t>("number of dimensions");
  if (tensor.n_dims == 0 || tensor.n_dims > kMaxDims) {
    in.fail(std::to_string(tensor.n_dims) + " dimensions, wanted 1 to " + std::to_string(kMaxDims));
  }
  for (uint32_t d = 0; d < tensor.n_dims; ++d) tensor.dims[d] = in.read<uint64_t>("dimensions");
  tensor.type = static_cast<TensorType>(in.read<uint32_t>("tensor type"));
  const TypeInfo* info = type_info(tensor.type);
  if (!info) in.fail("unknown tensor type " + std::to_string(static_cast<uint32_t>(tensor.type)));
  const uint64_t size = tensor_bytes(in, tensor, *info);
  const auto offset = in.read<uint64_t>("offset");
  if (offset % alignment != 0) {
    in.fail("offset " + std::to_string(offset) + " is no multiple of the alignment, " +
            std::to_string(alignment));
  }
  // Room for the start of the data as well: it cannot lie past 2^62.
  if (size > kMaxU64 / 4 || offset > kMaxU64 / 4) {
    in.fail("offset " + std::to_string(offset) + " and size " + std::to_string(size) + " are past any file");
  }
  return {.begin = offset, .size = size};
}

// Where the tensor data end, from their start. `order` sorts the ranges; none may begin inside another.
uint64_t require_disjoint(const std::vector<Tensor>& tensors, const std::vector<Range>& ranges,
                          const std::string& file_name) {
  std::vector<uint32_t> order(ranges.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(),
            [&](uint32_t a, uint32_t b) { return ranges[a].begin < ranges[b].begin; });
  for (size_t i = 1; i < order.size(); ++i) {
    const Range& before = ranges[order[i - 1]];
    const Range& after = ranges[order[i]];
    if (after.begin < before.end()) {
      throw Error(printable(file_name) + ": tensors " + quoted(tensors[order[i - 1]].name) + " (data bytes " +
                  std::to_string(before.begin) + " to " + std::to_string(before.end()) + ") and " +
                  quoted(tensors[order[i]].name) + " (from " + std::to_string(after.begin) + ") overlap");
    }
  }
  return order.empty() ? 0 : ranges[order.back()].end();
}

void require_unique(const std::vector<Tensor>& tensors, const std::string& file_name) {
  std::unordered_set<std::string_view> names;
  for (const Tensor& tensor : tensors) {
    if (!names.insert(tensor.name).second) {
      throw Error(printable(file_name) + ": tensor " + quoted(tensor.name) + " stands in the file twice");
    }
  }
}

// The end of the last tensor is what the file must reach; padding behind it may be missing.
void require_whole(std::span<const std::byte> bytes, const std::vector<Tensor>& tensors, uint64_t data_end,
                   const std::string& file_name) {
  if (data_end <= bytes.size() || tensors.empty()) return;
  throw Error(printable(file_name) + ": has " + std::to_string(bytes.size()) + " bytes, needs " +
              std::to_string(data_end) + " for its " + std::to_string(tensors.size()) +
              " tensors: incomplete download?");
}

uint64_t read_count(Cursor& in, const char* what, uint64_t max, uint64_t min_bytes_each) {
  const auto n = in.read<uint64_t>(what);
  if (n > max) in.fail(std::to_string(n) + ' ' + what + ", at most " + std::to_string(max) + " are allowed");
  in.require_room(n, min_bytes_each, what);
  return n;
}

}  // namespace

Directory read_directory(std::span<const std::byte> bytes, const std::string& file_name) {
  require_gguf(bytes, file_name);
  Cursor in(bytes, file_name);
  in.take(kMagic.size(), "magic");
  Directory directory;
  directory.version = in.read<uint32_t>("version");
  const uint64_t n_tensors = read_count(in, "tensors", kMaxTensors, kMinTensorBytes);
  const uint64_t n_keys = read_count(in, "keys", kMaxKeys, kMinKeyBytes);
  directory.metadata = read_metadata(in, n_keys, file_name);
  const uint32_t alignment = read_alignment(directory.metadata, file_name);

  std::vector<Tensor>& tensors = directory.tensors;
  tensors.resize(n_tensors);
  std::vector<Range> ranges(n_tensors);
  for (uint64_t i = 0; i < n_tensors; ++i) {
    in.enter("tensor", i);
    ranges[i] = read_tensor(in, alignment, tensors[i]);
  }
  require_unique(tensors, file_name);
  const uint64_t data_start = align_up(in.position(), alignment);
  const uint64_t data_end = data_start + require_disjoint(tensors, ranges, file_name);
  require_whole(bytes, tensors, data_end, file_name);
  const uint64_t own_end = tensors.empty() ? in.position() : data_end;
  require_single(bytes, {own_end, align_up(own_end, alignment)}, file_name);
  for (uint64_t i = 0; i < n_tensors; ++i) {
    tensors[i].data = bytes.subspan(data_start + ranges[i].begin, ranges[i].size);
  }
  return directory;
}

}  // namespace minfer::gguf
