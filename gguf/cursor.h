// Bounds-checked reading of little-endian bytes. Every failure is an Error that names the file, the place and
// both numbers: what was asked for and what is there.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "gguf/error.h"

namespace minfer::gguf {

static_assert(std::endian::native == std::endian::little,
              "the format is little-endian and is read by memcpy");

// Any scalar from bytes that need no alignment.
template <typename T>
T load(const std::byte* at) {
  static_assert(std::is_arithmetic_v<T>);
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

class Cursor {
 public:
  // Neither the bytes nor the name are owned.
  Cursor(std::span<const std::byte> bytes, std::string_view file_name)
      : bytes_(bytes), file_name_(file_name) {}

  size_t position() const { return position_; }
  size_t left() const { return bytes_.size() - position_; }
  const std::byte* here() const { return bytes_.data() + position_; }

  // What messages call the things read from here on: "key 3 'general.name'". `name` may be set once it is
  // known.
  void enter(const char* kind, uint64_t index) { kind_ = kind, index_ = index, name_ = {}; }
  void set_name(std::string_view name) { name_ = name; }

  template <typename T>
  T read(const char* what) {
    return load<T>(take(sizeof(T), what).data());
  }
  std::span<const std::byte> take(uint64_t n_bytes, const char* what);
  std::string_view read_string(const char* what);
  // Throws unless `n` items of at least `min_bytes_each` can still follow; so n * min_bytes_each cannot
  // overflow.
  void require_room(uint64_t n, uint64_t min_bytes_each, const char* what) const;

  [[noreturn]] void fail(const std::string& why) const;

 private:
  std::string place() const;

  std::span<const std::byte> bytes_;
  std::string_view file_name_;
  size_t position_ = 0;
  const char* kind_ = nullptr;
  uint64_t index_ = 0;
  std::string_view name_;
};

}  // namespace minfer::gguf
