// Private to the interpreter: strings that know which of their bytes users wrote.
// A character begins at every byte that is no UTF-8 continuation byte, and at the first: total on any bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/byte_range.h"

namespace minfer::jinja {

class Runtime;

// Bytes and marks belong to the parsed template, to the caller's variables or to the runtime's arena, all of
// which outlive every value of a rendering; so a slice copies nothing.
struct Text {
  std::string_view bytes;
  std::span<const ByteRange> input;   // users' bytes: ascending, disjoint, not adjacent
  mutable size_t n_chars = SIZE_MAX;  // counted when first asked for

  bool operator==(const Text& other) const { return bytes == other.bytes; }
};

inline bool begins_char(char byte) {
  return (static_cast<uint8_t>(byte) & 0xc0) != 0x80;
}
size_t count_chars(std::string_view bytes);
size_t count_chars(const Text& text);
// Where character `index` begins; the size for index == count_chars.
size_t byte_of_char(const Text& text, size_t index);
// Where the character that begins at `at` ends.
size_t next_char(std::string_view bytes, size_t at);
// Where the character that ends at `end` begins. end > 0.
size_t previous_char(std::string_view bytes, size_t end);
// The code point of one character; nothing a case or a space is known of for malformed bytes.
inline constexpr uint32_t kMalformed = UINT32_MAX;
uint32_t code_point(std::string_view character);

// str.isspace() of Python.
bool is_space(uint32_t code);
std::string_view trim_left(std::string_view bytes);
std::string_view trim_right(std::string_view bytes);

// The index of `needle` in linear time, npos where it is not.
size_t find_bytes(std::string_view haystack, std::string_view needle, size_t from = 0);
// The last n_most occurrences that do not overlap, from the right; linear too. The needle is not empty.
std::vector<size_t> rfind_all(std::string_view haystack, std::string_view needle, size_t n_most);

// A new text, piece by piece. Every byte counts against the limits as it comes.
class TextBuilder {
 public:
  explicit TextBuilder(Runtime& runtime) : runtime_(runtime) {}

  void add(std::string_view bytes, bool is_input = false);
  void add(const Text& text);
  void repeat(const Text& piece, size_t n_times);
  void fill(std::string_view piece, size_t n_times) { repeat(Text{piece, {}}, n_times); }
  size_t size() const { return bytes_.size(); }
  std::string_view bytes() const { return bytes_; }
  const Text* finish();

  std::string take_bytes() { return std::move(bytes_); }
  std::vector<ByteRange> take_input() { return std::move(input_); }

 private:
  void mark(size_t begin, size_t end);

  Runtime& runtime_;
  std::string bytes_;
  std::vector<ByteRange> input_;
};

// bytes [begin, end) of `text`.
const Text* slice_bytes(Runtime& runtime, const Text& text, size_t begin, size_t end);
// `piece` is a view into text.bytes.
const Text* slice_view(Runtime& runtime, const Text& text, std::string_view piece);

// Calls take(bytes, is_input) for each stretch of `text` that is wholly the user's or wholly not.
template <typename Take>
void for_each_stretch(const Text& text, Take&& take) {
  size_t at = 0;
  for (const ByteRange& range : text.input) {
    if (range.begin > at) take(text.bytes.substr(at, range.begin - at), false);
    take(text.bytes.substr(range.begin, range.end - range.begin), true);
    at = range.end;
  }
  if (at < text.bytes.size()) take(text.bytes.substr(at), false);
}

// The same a character at a time.
template <typename Take>
void for_each_char(const Text& text, Take&& take) {
  for_each_stretch(text, [&](std::string_view stretch, bool is_input) {
    for (size_t at = 0; at < stretch.size();) {
      const size_t end = next_char(stretch, at);
      take(stretch.substr(at, end - at), is_input);
      at = end;
    }
  });
}

}  // namespace minfer::jinja
