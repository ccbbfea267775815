#include "tests/support/gguf_files.h"

#include <array>
#include <cstdint>
#include <numeric>
#include <stdexcept>

#include "gguf/error.h"
#include "gguf/reader.h"
#include "tests/support/catch.h"

namespace minfer::test {
namespace {

using gguf::TensorType;
using gguf::ValueType;
using gguf::Writer;

template <typename T>
void add_array(Writer& out, std::string_view key, ValueType type, std::initializer_list<T> values) {
  out.add_scalars(key, type, values.size(), std::as_bytes(std::span(values.begin(), values.size())));
}

// [[1, 2], ["x"]] as the bytes behind the value type.
Bytes nested_array() {
  const auto u32 = [](uint32_t value) {
    return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
  };
  const auto u64 = [](uint64_t value) {
    return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
  };
  const auto type = [&](ValueType value) { return u32(static_cast<uint32_t>(value)); };
  return bytes_of(type(ValueType::kArray) + u64(2) + type(ValueType::kU8) + u64(2) + "\1\2" +
                  type(ValueType::kString) + u64(1) + u64(1) + "x");
}

void add_scalars(Writer& out) {
  out.add_u8("a.u8", 200);
  out.add_i8("a.i8", -100);
  out.add_u16("a.u16", 60000);
  out.add_i16("a.i16", -30000);
  out.add_u32("a.u32", 4000000000u);
  out.add_i32("a.i32", -2000000000);
  out.add_u64("a.u64", ~uint64_t{0});
  out.add_i64("a.i64", INT64_MIN);
  out.add_f32("a.f32", 1.5f);
  out.add_f64("a.f64", 1e300);
  out.add_bool("a.bool", true);
  out.add_string("a.string", "h\xc3\xa9");
}

void add_arrays(Writer& out) {
  add_array<uint8_t>(out, "b.u8", ValueType::kU8, {1, 255});
  add_array<int8_t>(out, "b.i8", ValueType::kI8, {-128, 127});
  add_array<uint16_t>(out, "b.u16", ValueType::kU16, {1, 65535});
  add_array<int16_t>(out, "b.i16", ValueType::kI16, {-32768, 32767});
  add_array<uint32_t>(out, "b.u32", ValueType::kU32, {1, 2147483647});
  add_array<uint64_t>(out, "b.u64", ValueType::kU64, {1, 2147483647});
  add_array<int64_t>(out, "b.i64", ValueType::kI64, {-1, 5});
  add_array<double>(out, "b.f64", ValueType::kF64, {0.5, -2});
  add_array<uint8_t>(out, "b.bool", ValueType::kBool, {1, 0, 1});
  const std::array<int32_t, 3> i32s{-1, 0, 7};
  out.add_i32s("b.i32", i32s);
  const std::array<float, 2> f32s{0.25f, -3};
  out.add_f32s("b.f32", f32s);
  const std::array<std::string, 3> strings{"one", "", "three"};
  out.add_strings("b.string", strings);
  out.add_raw("b.array", ValueType::kArray, nested_array());
}

void add_tensor(Writer& out, std::string_view name, TensorType type, std::vector<uint64_t> dims,
                size_t n_bytes) {
  Bytes data(n_bytes);
  for (size_t i = 0; i < n_bytes; ++i) data[i] = static_cast<std::byte>(i * 7 % 64);
  out.add_tensor(name, type, dims, data);
}

void add_f32s(Writer& out, const std::string& name) {
  std::array<float, 8> values;
  std::iota(values.begin(), values.end(), 0.0f);
  const std::array<uint64_t, 1> dims{values.size()};
  out.add_tensor(name, TensorType::kF32, dims, std::as_bytes(std::span(values)));
}

}  // namespace

Bytes bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string read_error(std::span<const std::byte> file) {
  const Bytes exact(file.begin(), file.end());
  try {
    gguf::Reader::from_bytes(exact, "f.gguf");
  } catch (const gguf::Error& e) {
    return e.what();
  }
  return "";
}

void check_message(const std::string& message, const std::string& part) {
  INFO(message << "\nwanted: " << part);
  CHECK(message.find(part) != std::string::npos);
  CHECK(message.find('\n') == std::string::npos);
}

Bytes every_type_file(uint32_t version, uint32_t alignment) {
  Writer out(version, alignment);
  out.add_string("general.architecture", "llama");
  add_scalars(out);
  add_arrays(out);
  add_tensor(out, "t.f32", TensorType::kF32, {4, 2}, 32);
  add_tensor(out, "t.f16", TensorType::kF16, {3}, 6);
  add_tensor(out, "t.q4_0", TensorType::kQ4_0, {32, 2, 1, 2}, 4 * 18);
  add_tensor(out, "t.q6_K", TensorType::kQ6_K, {256}, 210);
  return out.finish();
}

Bytes file_with(const std::function<void(gguf::Writer&)>& fill) {
  Writer out;
  fill(out);
  add_f32s(out, "t");
  return out.finish();
}

Bytes shard_file(const Shard& shard) {
  Writer out;
  if (shard.no == 0) out.add_string("general.architecture", "llama");
  // Of three widths, as the tools in use write them.
  out.add_u16("split.no", static_cast<uint16_t>(shard.no));
  out.add_u8("split.count", static_cast<uint8_t>(shard.count));
  out.add_i32("split.tensors.count", shard.n_tensors);
  for (const std::string& name : shard.tensors) add_f32s(out, name);
  return out.finish();
}

std::vector<Bytes> three_shards() {
  return {shard_file({.no = 0, .count = 3, .n_tensors = 5, .tensors = {"a", "b"}}),
          shard_file({.no = 1, .count = 3, .n_tensors = 5, .tensors = {"c"}}),
          shard_file({.no = 2, .count = 3, .n_tensors = 5, .tensors = {"d", "e"}})};
}

size_t last_position(std::span<const std::byte> file, std::string_view needle) {
  const size_t at = text_of(file).rfind(needle);
  if (at == std::string_view::npos)
    throw std::runtime_error("no such bytes in the file: " + std::string(needle));
  return at;
}

}  // namespace minfer::test
