#include "gguf/writer.h"

#include <cstring>
#include <type_traits>
#include <utility>

namespace minfer::gguf {
namespace {

void put_bytes(std::vector<std::byte>& out, const void* bytes, size_t n) {
  const size_t at = out.size();
  out.resize(at + n);
  if (n > 0) std::memcpy(out.data() + at, bytes, n);
}

template <typename T>
void put(std::vector<std::byte>& out, T value) {
  static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
  put_bytes(out, &value, sizeof(T));
}

void put_string(std::vector<std::byte>& out, std::string_view text) {
  put(out, uint64_t{text.size()});
  put_bytes(out, text.data(), text.size());
}

uint64_t padding(uint64_t n, uint64_t alignment) {
  return alignment ? (alignment - n % alignment) % alignment : 0;
}

}  // namespace

Writer::Writer(uint32_t version, uint32_t alignment) : version_(version), alignment_(alignment) {
  if (alignment != kDefaultAlignment) add_u32("general.alignment", alignment);
}

void Writer::begin_value(std::string_view key, ValueType type) {
  put_string(kv_, key);
  put(kv_, type);
  ++n_kv_;
}

void Writer::add_u8(std::string_view key, uint8_t value) {
  begin_value(key, ValueType::kU8), put(kv_, value);
}
void Writer::add_i8(std::string_view key, int8_t value) {
  begin_value(key, ValueType::kI8), put(kv_, value);
}
void Writer::add_u16(std::string_view key, uint16_t value) {
  begin_value(key, ValueType::kU16), put(kv_, value);
}
void Writer::add_i16(std::string_view key, int16_t value) {
  begin_value(key, ValueType::kI16), put(kv_, value);
}
void Writer::add_u32(std::string_view key, uint32_t value) {
  begin_value(key, ValueType::kU32), put(kv_, value);
}
void Writer::add_i32(std::string_view key, int32_t value) {
  begin_value(key, ValueType::kI32), put(kv_, value);
}
void Writer::add_u64(std::string_view key, uint64_t value) {
  begin_value(key, ValueType::kU64), put(kv_, value);
}
void Writer::add_i64(std::string_view key, int64_t value) {
  begin_value(key, ValueType::kI64), put(kv_, value);
}
void Writer::add_f32(std::string_view key, float value) {
  begin_value(key, ValueType::kF32), put(kv_, value);
}
void Writer::add_f64(std::string_view key, double value) {
  begin_value(key, ValueType::kF64), put(kv_, value);
}

void Writer::add_bool(std::string_view key, bool value) {
  begin_value(key, ValueType::kBool);
  put(kv_, static_cast<uint8_t>(value));
}

void Writer::add_string(std::string_view key, std::string_view value) {
  begin_value(key, ValueType::kString);
  put_string(kv_, value);
}

void Writer::add_strings(std::string_view key, std::span<const std::string> values) {
  begin_value(key, ValueType::kArray);
  put(kv_, ValueType::kString);
  put(kv_, uint64_t{values.size()});
  for (const std::string& value : values) put_string(kv_, value);
}

void Writer::add_i32s(std::string_view key, std::span<const int32_t> values) {
  add_scalars(key, ValueType::kI32, values.size(), std::as_bytes(values));
}

void Writer::add_f32s(std::string_view key, std::span<const float> values) {
  add_scalars(key, ValueType::kF32, values.size(), std::as_bytes(values));
}

void Writer::add_scalars(std::string_view key, ValueType element_type, uint64_t n,
                         std::span<const std::byte> bytes) {
  begin_value(key, ValueType::kArray);
  put(kv_, element_type);
  put(kv_, n);
  put_bytes(kv_, bytes.data(), bytes.size());
}

void Writer::add_raw(std::string_view key, ValueType type, std::span<const std::byte> bytes) {
  begin_value(key, type);
  put_bytes(kv_, bytes.data(), bytes.size());
}

void Writer::add_tensor(std::string_view name, TensorType type, std::span<const uint64_t> dims,
                        std::span<const std::byte> data) {
  tensors_.push_back({.name = std::string(name),
                      .type = type,
                      .dims = {dims.begin(), dims.end()},
                      .data = {data.begin(), data.end()}});
}

std::vector<std::byte> Writer::finish() {
  std::vector<std::byte> out;
  put_bytes(out, kMagic.data(), kMagic.size());
  put(out, version_);
  put(out, uint64_t{tensors_.size()});
  put(out, n_kv_);
  put_bytes(out, kv_.data(), kv_.size());
  uint64_t offset = 0;
  for (const TensorEntry& tensor : tensors_) {
    put_string(out, tensor.name);
    put(out, static_cast<uint32_t>(tensor.dims.size()));
    for (const uint64_t dim : tensor.dims) put(out, dim);
    put(out, tensor.type);
    put(out, offset);
    offset += tensor.data.size() + padding(tensor.data.size(), alignment_);
  }
  out.resize(out.size() + padding(out.size(), alignment_));
  out.reserve(out.size() + offset);
  for (TensorEntry& tensor : tensors_) {
    put_bytes(out, tensor.data.data(), tensor.data.size());
    out.resize(out.size() + padding(tensor.data.size(), alignment_));
    tensor.data = {};
  }
  return out;
}

}  // namespace minfer::gguf
