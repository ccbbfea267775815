// Builds a GGUF file in memory: for tests, and for requantizing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/blocks.h"
#include "gguf/format.h"

namespace minfer::gguf {

// Keys and tensors are written in the order in which they were added, behind general.alignment where it is
// not the default. Nothing is validated, so that a test can write a wrong file too. `finish` may be called
// once.
class Writer {
 public:
  explicit Writer(uint32_t version = kMaxVersion, uint32_t alignment = kDefaultAlignment);

  void add_u8(std::string_view key, uint8_t value);
  void add_i8(std::string_view key, int8_t value);
  void add_u16(std::string_view key, uint16_t value);
  void add_i16(std::string_view key, int16_t value);
  void add_u32(std::string_view key, uint32_t value);
  void add_i32(std::string_view key, int32_t value);
  void add_u64(std::string_view key, uint64_t value);
  void add_i64(std::string_view key, int64_t value);
  void add_f32(std::string_view key, float value);
  void add_f64(std::string_view key, double value);
  void add_bool(std::string_view key, bool value);
  void add_string(std::string_view key, std::string_view value);
  void add_strings(std::string_view key, std::span<const std::string> values);
  void add_i32s(std::string_view key, std::span<const int32_t> values);
  void add_f32s(std::string_view key, std::span<const float> values);
  // An array of any scalar type, its elements already as little-endian bytes.
  void add_scalars(std::string_view key, ValueType element_type, uint64_t n,
                   std::span<const std::byte> bytes);
  // A value of any type as the bytes that stand in the file behind the type: nested arrays, and wrong values.
  void add_raw(std::string_view key, ValueType type, std::span<const std::byte> bytes);

  // dims[0] is the contiguous one; `data` is whole blocks of `type`.
  void add_tensor(std::string_view name, TensorType type, std::span<const uint64_t> dims,
                  std::span<const std::byte> data);

  std::vector<std::byte> finish();

 private:
  struct TensorEntry {
    std::string name;
    TensorType type;
    std::vector<uint64_t> dims;
    std::vector<std::byte> data;
  };
  void begin_value(std::string_view key, ValueType type);

  uint32_t version_;
  uint32_t alignment_;
  uint64_t n_kv_ = 0;
  std::vector<std::byte> kv_;
  std::vector<TensorEntry> tensors_;
};

}  // namespace minfer::gguf
