// The GGUF container, versions 2 and 3. Everything is little-endian.
//
//   magic "GGUF" | u32 version | u64 n_tensors | u64 n_kv
//   n_kv times:      string key | u32 value type | value
//   n_tensors times: string name | u32 n_dims | u64 dims[n_dims] | u32 tensor type | u64 offset
//   padding to `general.alignment` (32 unless the key says otherwise)
//   tensor data; each offset counts from here and is a multiple of the alignment
//
//   string = u64 length | bytes (UTF-8, no terminator)
//   array  = u32 element type | u64 count | elements
//
// dims[0] is the innermost (contiguous) one. A model may be split over files NAME-00001-of-0000N.gguf: every
// one is a GGUF file of its own with the keys split.no (from 0), split.count and split.tensors.count; the
// first holds the metadata. Source: the GGUF specification in the ggml project's docs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace minfer::gguf {

inline constexpr std::string_view kMagic = "GGUF";
inline constexpr uint32_t kMinVersion = 2;
inline constexpr uint32_t kMaxVersion = 3;
inline constexpr uint32_t kDefaultAlignment = 32;
inline constexpr uint32_t kMaxDims = 4;

// Bounds that no real file comes near; they keep what a hostile one makes us allocate below its own size plus
// 1 MiB.
inline constexpr uint64_t kMaxKeys = 4096;
inline constexpr uint64_t kMaxTensors = 16384;
inline constexpr uint64_t kMaxKeyBytes = 65535;        // the specification's own bound
inline constexpr uint64_t kMaxTensorNameBytes = 1024;  // the specification says 64
inline constexpr uint32_t kMaxAlignment = 1u << 20;
inline constexpr int kMaxArrayDepth = 4;

enum class ValueType : uint32_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kU64 = 10,
  kI64 = 11,
  kF64 = 12,
};

// Bytes of a scalar; 0 for strings, arrays and numbers that are no value type.
size_t scalar_size(ValueType type);
std::string_view value_type_name(ValueType type);

}  // namespace minfer::gguf
