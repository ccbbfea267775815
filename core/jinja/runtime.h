// Private to the interpreter: what one rendering owns: its values, and what is left of its limits.
#pragma once

#include <ctime>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/jinja/template.h"
#include "core/jinja/value.h"

namespace minfer::jinja {

class Runtime {
 public:
  Runtime(std::string_view source, const Limits& limits, const std::tm& now)
      : source_(source), limits_(limits), now_(now), n_steps_left_(limits.n_steps) {}
  Runtime(const Runtime&) = delete;

  const Limits& limits() const { return limits_; }
  const std::tm& now() const { return now_; }

  // The byte of the source that errors are about.
  void set_place(uint32_t offset) { place_ = offset; }
  [[noreturn]] void fail(const std::string& message) const;
  [[noreturn]] void raise(const std::string& message) const;

  void step(uint64_t n = 1) {
    if (n > n_steps_left_) out_of_steps();
    n_steps_left_ -= n;
  }
  // Work on a text is paid for by its bytes, so that a step's time is bounded.
  void scan(size_t n_bytes) { step(n_bytes / kBytesPerStep); }
  // So is looking through names.
  void look_through(size_t n_names) { step(n_names / kNamesPerStep); }
  // One level of a filter that applies another by its name: arguments can chain them without end.
  class FilterLevel {
   public:
    explicit FilterLevel(Runtime& runtime);
    ~FilterLevel() { --runtime_.filter_level_; }
    FilterLevel(const FilterLevel&) = delete;

   private:
    Runtime& runtime_;
  };
  void take_bytes(size_t n);                   // of all that is made
  void check_text_size(size_t n_bytes) const;  // of one string

  const Text* keep(std::string bytes, std::vector<ByteRange> input);
  const Text* view(std::string_view bytes, std::span<const ByteRange> input = {});
  const Text* copy(std::string_view bytes);
  std::span<const ByteRange> keep(std::vector<ByteRange> input);
  Value text(std::string bytes) { return Value::text(keep(std::move(bytes), {})); }
  Value undefined(std::string message);

  List* new_list();
  List* new_list(std::vector<Value> items);
  void append(List& list, const Value& value);  // counted
  Dict* new_dict();
  void set(Dict& dict, const Value& key, const Value& value);      // counted; the key must be hashable
  void set(Dict& dict, std::string_view key, const Value& value);  // `key` outlives the rendering
  Value tuple(std::initializer_list<Value> items);

  // Owned by the arena too; T is destroyed with it.
  template <typename T, typename... Arguments>
  T* make(Arguments&&... arguments) {
    take_bytes(sizeof(T));
    auto holder = std::make_unique<Holder<T>>(std::forward<Arguments>(arguments)...);
    T* made = &holder->value;
    others_.push_back(std::move(holder));
    return made;
  }

 private:
  static constexpr size_t kBytesPerStep = 256;
  static constexpr size_t kNamesPerStep = 32;

  struct Held {
    virtual ~Held() = default;
  };
  template <typename T>
  struct Holder : Held {
    template <typename... Arguments>
    explicit Holder(Arguments&&... arguments) : value{std::forward<Arguments>(arguments)...} {}
    T value;
  };

  [[noreturn]] void out_of_steps() const;

  std::string_view source_;
  const Limits limits_;
  const std::tm now_;
  uint64_t n_steps_left_;
  size_t n_bytes_made_ = 0;
  uint32_t place_ = 0;
  int filter_level_ = 0;

  std::deque<Text> texts_;
  std::deque<std::string> bytes_;
  std::deque<std::vector<ByteRange>> inputs_;
  std::deque<List> lists_;
  std::deque<Dict> dicts_;
  std::deque<Missing> missing_;
  std::vector<std::unique_ptr<Held>> others_;
};

// The error of `message` at byte `offset` of `source`.
Error error_at(std::string_view source, size_t offset, const std::string& message, bool raised = false);

}  // namespace minfer::jinja
