#include "gguf/metadata.h"

#include <cmath>
#include <limits>
#include <type_traits>

#include "gguf/cursor.h"
#include "gguf/error.h"

namespace minfer::gguf {
namespace {

constexpr size_t kMaxWidened = size_t{1} << 18;

std::string described(const Entry& entry) {
  if (entry.type != ValueType::kArray) return std::string(value_type_name(entry.type));
  if (const auto* array = std::get_if<ScalarArray>(&entry.value)) {
    return "array of " + std::to_string(array->n) + ' ' + std::string(value_type_name(array->type));
  }
  if (const auto* array = std::get_if<StringArray>(&entry.value)) {
    return "array of " + std::to_string(array->size()) + " string";
  }
  return "array of " + std::to_string(std::get<NestedArray>(entry.value).n) + " arrays";
}

// Calls use(i, value) for each element, in the type it is stored in.
template <typename T, typename Use>
void for_each_as(const ScalarArray& array, Use& use) {
  for (size_t i = 0; i < array.n; ++i) use(i, load<T>(array.bytes.data() + i * sizeof(T)));
}

template <typename Use>
void for_each(const ScalarArray& array, Use use) {
  switch (array.type) {
    case ValueType::kU8:
    case ValueType::kBool:
      return for_each_as<uint8_t>(array, use);
    case ValueType::kI8:
      return for_each_as<int8_t>(array, use);
    case ValueType::kU16:
      return for_each_as<uint16_t>(array, use);
    case ValueType::kI16:
      return for_each_as<int16_t>(array, use);
    case ValueType::kU32:
      return for_each_as<uint32_t>(array, use);
    case ValueType::kI32:
      return for_each_as<int32_t>(array, use);
    case ValueType::kU64:
      return for_each_as<uint64_t>(array, use);
    case ValueType::kI64:
      return for_each_as<int64_t>(array, use);
    case ValueType::kF32:
      return for_each_as<float>(array, use);
    case ValueType::kF64:
      return for_each_as<double>(array, use);
    case ValueType::kString:
    case ValueType::kArray:
      return;
  }
}

bool is_float(ValueType type) {
  return type == ValueType::kF32 || type == ValueType::kF64;
}

}  // namespace

std::string_view StringArray::Iterator::operator*() const {
  return {reinterpret_cast<const char*>(at_) + sizeof(uint64_t), load<uint64_t>(at_)};
}

StringArray::Iterator& StringArray::Iterator::operator++() {
  at_ += sizeof(uint64_t) + load<uint64_t>(at_);
  ++index_;
  return *this;
}

void Metadata::fail(const Entry& entry, const std::string& why) const {
  throw Error(printable(file_name_) + ": key " + quoted(entry.key) + ": " + why);
}

void Metadata::add(Entry entry) {
  if (!index_.emplace(entry.key, entries_.size()).second) fail(entry, "stands in the file twice");
  entries_.push_back(std::move(entry));
}

const Entry* Metadata::find(std::string_view key) const {
  const auto found = index_.find(key);
  return found == index_.end() ? nullptr : &entries_[found->second];
}

std::optional<uint64_t> Metadata::get_u64(std::string_view key) const {
  const Entry* entry = find(key);
  if (!entry) return std::nullopt;
  if (const auto* value = std::get_if<uint64_t>(&entry->value)) return *value;
  if (const auto* value = std::get_if<int64_t>(&entry->value)) {
    if (*value < 0) fail(*entry, "is " + std::to_string(*value) + ", wanted 0 or more");
    return static_cast<uint64_t>(*value);
  }
  fail(*entry, "holds " + described(*entry) + ", wanted an integer");
}

std::optional<uint32_t> Metadata::get_u32(std::string_view key) const {
  const auto value = get_u64(key);
  if (!value) return std::nullopt;
  if (*value > std::numeric_limits<uint32_t>::max()) {
    fail(*find(key), "is " + std::to_string(*value) + ", wanted at most 4294967295");
  }
  return static_cast<uint32_t>(*value);
}

std::optional<double> Metadata::get_f64(std::string_view key) const {
  const Entry* entry = find(key);
  if (!entry) return std::nullopt;
  if (const auto* value = std::get_if<double>(&entry->value)) return *value;
  if (const auto* value = std::get_if<uint64_t>(&entry->value)) return static_cast<double>(*value);
  if (const auto* value = std::get_if<int64_t>(&entry->value)) return static_cast<double>(*value);
  fail(*entry, "holds " + described(*entry) + ", wanted a number");
}

std::optional<bool> Metadata::get_bool(std::string_view key) const {
  const Entry* entry = find(key);
  if (!entry) return std::nullopt;
  if (const auto* value = std::get_if<bool>(&entry->value)) return *value;
  fail(*entry, "holds " + described(*entry) + ", wanted bool");
}

std::optional<std::string_view> Metadata::get_string(std::string_view key) const {
  const Entry* entry = find(key);
  if (!entry) return std::nullopt;
  if (const auto* value = std::get_if<std::string_view>(&entry->value)) return *value;
  fail(*entry, "holds " + described(*entry) + ", wanted string");
}

std::optional<StringArray> Metadata::get_strings(std::string_view key) const {
  const Entry* entry = find(key);
  if (!entry) return std::nullopt;
  if (const auto* value = std::get_if<StringArray>(&entry->value)) return *value;
  // An empty array is written with whatever element type its writer had at hand.
  if (const auto* value = std::get_if<ScalarArray>(&entry->value); value && value->n == 0)
    return StringArray();
  fail(*entry, "holds " + described(*entry) + ", wanted array of string");
}

const ScalarArray& Metadata::scalars(const Entry& entry, const char* wanted) const {
  static const ScalarArray kEmpty;
  if (const auto* strings = std::get_if<StringArray>(&entry.value); strings && strings->size() == 0)
    return kEmpty;
  const auto* array = std::get_if<ScalarArray>(&entry.value);
  if (!array || array->type == ValueType::kBool)
    fail(entry, "holds " + described(entry) + ", wanted " + wanted);
  if (scalar_size(array->type) < 4 && array->n > kMaxWidened) {
    fail(entry, "holds " + described(entry) + ", wanted at most " + std::to_string(kMaxWidened) +
                    " elements of fewer than 4 bytes");
  }
  return *array;
}

std::optional<std::vector<int32_t>> Metadata::get_i32s(std::string_view key) const {
  const Entry* entry = find(key);
  if (!entry) return std::nullopt;
  const ScalarArray& array = scalars(*entry, "array of integers");
  if (is_float(array.type)) fail(*entry, "holds " + described(*entry) + ", wanted array of integers");
  std::vector<int32_t> out(array.n);
  for_each(array, [&](size_t i, auto value) {
    if constexpr (std::is_integral_v<decltype(value)>) {
      if (!std::in_range<int32_t>(value)) {
        fail(*entry, "element " + std::to_string(i) + " is " + std::to_string(value) + ", which is no i32");
      }
      out[i] = static_cast<int32_t>(value);
    }
  });
  return out;
}

std::optional<std::vector<float>> Metadata::get_f32s(std::string_view key) const {
  const Entry* entry = find(key);
  if (!entry) return std::nullopt;
  const ScalarArray& array = scalars(*entry, "array of numbers");
  std::vector<float> out(array.n);
  for_each(array, [&](size_t i, auto value) {
    if constexpr (std::is_same_v<decltype(value), double>) {
      if (std::isfinite(value) && std::abs(value) > double{std::numeric_limits<float>::max()}) {
        fail(*entry, "element " + std::to_string(i) + " is " + std::to_string(value) + ", which is no f32");
      }
    }
    out[i] = static_cast<float>(value);
  });
  return out;
}

}  // namespace minfer::gguf
