// The typed key-value section of a GGUF file. Strings and arrays are views into the file: nothing is copied,
// and they live as long as the Reader they come from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "gguf/format.h"

namespace minfer::gguf {

// n strings laid out as in the file (u64 length, bytes), validated when the file was read. Forward iteration
// only.
class StringArray {
 public:
  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = std::string_view;
    using difference_type = std::ptrdiff_t;
    using pointer = const value_type*;
    using reference = value_type;

    Iterator() = default;
    Iterator(const std::byte* at, size_t index) : at_(at), index_(index) {}
    std::string_view operator*() const;
    Iterator& operator++();
    Iterator operator++(int) {
      Iterator old = *this;
      ++*this;
      return old;
    }
    bool operator==(const Iterator& other) const { return index_ == other.index_; }

   private:
    const std::byte* at_ = nullptr;
    size_t index_ = 0;
  };

  StringArray() = default;
  StringArray(const std::byte* first, size_t n) : first_(first), n_(n) {}
  size_t size() const { return n_; }
  Iterator begin() const { return {first_, 0}; }
  Iterator end() const { return {nullptr, n_}; }

 private:
  const std::byte* first_ = nullptr;
  size_t n_ = 0;
};

// n scalars of one type, unaligned little-endian as in the file.
struct ScalarArray {
  ValueType type = ValueType::kU8;
  size_t n = 0;
  std::span<const std::byte> bytes;
};

// An array of arrays: read past and kept only by its size (no key of a supported model holds one).
struct NestedArray {
  size_t n = 0;
};

using Value =
    std::variant<uint64_t, int64_t, double, bool, std::string_view, ScalarArray, StringArray, NestedArray>;

struct Entry {
  std::string_view key;
  ValueType type;  // as stored: kU32 and kU64 both arrive as uint64_t, kF32 and kF64 as double
  Value value;
};

// Getters return nothing where the key is absent and throw Error, naming the key and both types, where it
// holds something else. Integers of any width and sign are accepted where the value fits.
class Metadata {
 public:
  Metadata() = default;
  explicit Metadata(std::string file_name) : file_name_(std::move(file_name)) {}  // for messages

  const Entry* find(std::string_view key) const;
  bool has(std::string_view key) const { return find(key) != nullptr; }

  std::optional<uint64_t> get_u64(std::string_view key) const;
  std::optional<uint32_t> get_u32(std::string_view key) const;  // throws where the value does not fit
  std::optional<double> get_f64(std::string_view key) const;    // f32, f64 or any integer
  std::optional<bool> get_bool(std::string_view key) const;
  std::optional<std::string_view> get_string(std::string_view key) const;
  // Give the result a name before looping over it: in C++20, `for (... : *get_strings(key))` outlives the
  // optional.
  std::optional<StringArray> get_strings(std::string_view key) const;
  // Arrays of any integer (or, for f32, also any float) type, converted. Throws where a value does not fit,
  // and where more than 2^18 elements of fewer than 4 bytes would have to be widened: the copy may not
  // outgrow the file.
  std::optional<std::vector<int32_t>> get_i32s(std::string_view key) const;
  std::optional<std::vector<float>> get_f32s(std::string_view key) const;

  const std::vector<Entry>& entries() const { return entries_; }  // in file order
  // Throws Error on a duplicate key.
  void add(Entry entry);
  void reserve(size_t n) { entries_.reserve(n); }

 private:
  [[noreturn]] void fail(const Entry& entry, const std::string& why) const;
  const ScalarArray& scalars(const Entry& entry, const char* wanted) const;

  std::string file_name_;
  std::vector<Entry> entries_;
  std::unordered_map<std::string_view, size_t> index_;
};

}  // namespace minfer::gguf
