#include "core/jinja/runtime.h"

#include <fmt/format.h>

#include <algorithm>

namespace minfer::jinja {
namespace {

constexpr size_t kBytesPerItem = 2 * sizeof(Value);   // a vector that grows holds up to twice its items
constexpr size_t kBytesPerEntry = 6 * sizeof(Value);  // key, value and the index

}  // namespace

Error error_at(std::string_view source, size_t offset, const std::string& message, bool raised) {
  const std::string_view before = source.substr(0, std::min(offset, source.size()));
  const size_t line_begin = before.rfind('\n') + 1;  // npos + 1 is 0
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const auto column = 1 + count_chars(before.substr(line_begin));
  return Error(message, static_cast<int>(line), static_cast<int>(column), raised);
}

void Runtime::fail(const std::string& message) const {
  throw error_at(source_, place_, message);
}

void Runtime::raise(const std::string& message) const {
  throw error_at(source_, place_, message, true);
}

void Runtime::out_of_steps() const {
  fail(fmt::format("the template takes more than {} steps", limits_.n_steps));
}

Runtime::FilterLevel::FilterLevel(Runtime& runtime) : runtime_(runtime) {
  if (runtime.filter_level_ >= runtime.limits_.depth) {
    runtime.fail(fmt::format("filters nested more than {} deep", runtime.limits_.depth));
  }
  ++runtime.filter_level_;
}

void Runtime::take_bytes(size_t n) {
  const size_t left = limits_.n_total_bytes - n_bytes_made_;
  if (n > left) {
    fail(fmt::format("the template's values take more than {} bytes ({} left, {} needed)",
                     limits_.n_total_bytes, left, n));
  }
  n_bytes_made_ += n;
}

void Runtime::check_text_size(size_t n_bytes) const {
  if (n_bytes > limits_.n_bytes) {
    fail(fmt::format("a string of more than {} bytes ({} needed)", limits_.n_bytes, n_bytes));
  }
}

const Text* Runtime::view(std::string_view bytes, std::span<const ByteRange> input) {
  take_bytes(sizeof(Text));
  texts_.push_back({bytes, input});
  return &texts_.back();
}

std::span<const ByteRange> Runtime::keep(std::vector<ByteRange> input) {
  if (input.empty()) return {};
  take_bytes(input.size() * sizeof(ByteRange));
  inputs_.push_back(std::move(input));
  return inputs_.back();
}

const Text* Runtime::keep(std::string bytes, std::vector<ByteRange> input) {
  take_bytes(bytes.size());
  bytes_.push_back(std::move(bytes));
  return view(bytes_.back(), keep(std::move(input)));
}

const Text* Runtime::copy(std::string_view bytes) {
  check_text_size(bytes.size());
  return keep(std::string(bytes), {});
}

Value Runtime::undefined(std::string message) {
  take_bytes(sizeof(Missing) + message.size());
  missing_.push_back({std::move(message)});
  return Value::undefined(&missing_.back());
}

List* Runtime::new_list() {
  take_bytes(sizeof(List));
  return &lists_.emplace_back();
}

List* Runtime::new_list(std::vector<Value> items) {
  List* list = new_list();
  take_bytes(items.size() * kBytesPerItem);
  list->items = std::move(items);
  return list;
}

void Runtime::append(List& list, const Value& value) {
  take_bytes(kBytesPerItem);
  list.items.push_back(value);
}

Dict* Runtime::new_dict() {
  take_bytes(sizeof(Dict));
  return &dicts_.emplace_back();
}

void Runtime::set(Dict& dict, const Value& key, const Value& value) {
  take_bytes(kBytesPerEntry);
  dict.set(key, value);
}

void Runtime::set(Dict& dict, std::string_view key, const Value& value) {
  set(dict, Value::text(view(key)), value);
}

Value Runtime::tuple(std::initializer_list<Value> items) {
  return Value::tuple(new_list(std::vector<Value>(items)));
}

}  // namespace minfer::jinja
