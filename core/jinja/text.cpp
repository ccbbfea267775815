#include "core/jinja/text.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "core/jinja/runtime.h"
#include "core/utf8.h"

namespace minfer::jinja {

namespace {

constexpr size_t kPiecesPerStep = 16;

}  // namespace

size_t count_chars(std::string_view bytes) {
  const auto n = static_cast<size_t>(std::count_if(bytes.begin(), bytes.end(), begins_char));
  return n + (!bytes.empty() && !begins_char(bytes[0]));
}

size_t count_chars(const Text& text) {
  if (text.n_chars == SIZE_MAX) text.n_chars = count_chars(text.bytes);
  return text.n_chars;
}

size_t next_char(std::string_view bytes, size_t at) {
  ++at;
  while (at < bytes.size() && !begins_char(bytes[at])) ++at;
  return at;
}

size_t previous_char(std::string_view bytes, size_t end) {
  --end;
  while (end > 0 && !begins_char(bytes[end])) --end;
  return end;
}

size_t byte_of_char(const Text& text, size_t index) {
  const size_t n_chars = count_chars(text);
  if (n_chars == text.bytes.size()) return index;  // one byte each
  if (index > n_chars / 2) {
    size_t at = text.bytes.size();
    for (size_t i = n_chars; i > index; --i) at = previous_char(text.bytes, at);
    return at;
  }
  size_t at = 0;
  for (size_t i = 0; i < index; ++i) at = next_char(text.bytes, at);
  return at;
}

uint32_t code_point(std::string_view character) {
  const int size = character.empty() ? kUtf8Invalid : utf8_char_size(character);
  if (size < 1 || static_cast<size_t>(size) != character.size()) return kMalformed;
  const auto lead = static_cast<uint8_t>(character[0]);
  if (size == 1) return lead;
  uint32_t code = lead & (0x7fu >> size);
  for (const char c : character.substr(1)) code = code << 6 | (static_cast<uint8_t>(c) & 0x3fu);
  return code;
}

bool is_space(uint32_t code) {
  if (code < 0x80) return (code >= 0x09 && code <= 0x0d) || (code >= 0x1c && code <= 0x20);
  static constexpr std::array<uint32_t, 8> kOthers = {0x85,   0xa0,   0x1680, 0x2028,
                                                      0x2029, 0x202f, 0x205f, 0x3000};
  if (code >= 0x2000 && code <= 0x200a) return true;
  return std::find(kOthers.begin(), kOthers.end(), code) != kOthers.end();
}

std::string_view trim_left(std::string_view bytes) {
  size_t at = 0;
  while (at < bytes.size()) {
    const size_t end = next_char(bytes, at);
    if (!is_space(code_point(bytes.substr(at, end - at)))) break;
    at = end;
  }
  return bytes.substr(at);
}

std::string_view trim_right(std::string_view bytes) {
  size_t end = bytes.size();
  while (end > 0) {
    const size_t at = previous_char(bytes, end);
    if (!is_space(code_point(bytes.substr(at, end - at)))) break;
    end = at;
  }
  return bytes.substr(0, end);
}

size_t find_bytes(std::string_view haystack, std::string_view needle, size_t from) {
  if (from > haystack.size()) return std::string_view::npos;
  if (needle.empty()) return from;
  // Unlike string_view::find, memmem is linear in the worst case too.
  const void* found = ::memmem(haystack.data() + from, haystack.size() - from, needle.data(), needle.size());
  return found ? static_cast<size_t>(static_cast<const char*>(found) - haystack.data())
               : std::string_view::npos;
}

std::vector<size_t> rfind_all(std::string_view haystack, std::string_view needle, size_t n_most) {
  // There is no linear search backwards in the library; one forwards in mirror images is.
  const std::string mirrored(haystack.rbegin(), haystack.rend());
  const std::string mirrored_needle(needle.rbegin(), needle.rend());
  std::vector<size_t> found;
  for (size_t at = 0; found.size() < n_most; at += needle.size()) {
    at = find_bytes(mirrored, mirrored_needle, at);
    if (at == std::string_view::npos) break;
    found.push_back(haystack.size() - at - needle.size());
  }
  return found;
}

void TextBuilder::mark(size_t begin, size_t end) {
  if (begin == end) return;
  if (!input_.empty() && input_.back().end == begin) {
    input_.back().end = end;
  } else {
    runtime_.take_bytes(sizeof(ByteRange));
    input_.push_back({begin, end});
  }
}

void TextBuilder::add(std::string_view bytes, bool is_input) {
  runtime_.check_text_size(bytes_.size() + bytes.size());
  runtime_.take_bytes(bytes.size());
  const size_t begin = bytes_.size();
  bytes_.append(bytes);
  if (is_input) mark(begin, bytes_.size());
}

void TextBuilder::add(const Text& text) {
  const size_t begin = bytes_.size();
  add(text.bytes);
  for (const ByteRange& range : text.input) mark(begin + range.begin, begin + range.end);
}

void TextBuilder::repeat(const Text& piece, size_t n_times) {
  if (piece.bytes.empty()) return;
  runtime_.check_text_size(n_times);  // before the product, which could overflow
  runtime_.check_text_size(bytes_.size() + piece.bytes.size() * n_times);
  runtime_.step(n_times / kPiecesPerStep);
  for (size_t i = 0; i < n_times; ++i) add(piece);
}

const Text* TextBuilder::finish() {
  return runtime_.keep(std::move(bytes_), std::move(input_));
}

const Text* slice_bytes(Runtime& runtime, const Text& text, size_t begin, size_t end) {
  if (begin == 0 && end == text.bytes.size()) return &text;
  const std::string_view bytes = text.bytes.substr(begin, end - begin);
  runtime.scan(bytes.size());  // a new text's characters are counted anew
  const auto by_end = [](const ByteRange& range, size_t at) { return range.end <= at; };
  auto range = std::lower_bound(text.input.begin(), text.input.end(), begin, by_end);
  std::vector<ByteRange> input;
  for (; range != text.input.end() && range->begin < end; ++range) {
    const size_t from = std::max(range->begin, begin), to = std::min(range->end, end);
    if (from < to) input.push_back({from - begin, to - begin});
  }
  return runtime.view(bytes, runtime.keep(std::move(input)));
}

const Text* slice_view(Runtime& runtime, const Text& text, std::string_view piece) {
  const auto begin = static_cast<size_t>(piece.data() - text.bytes.data());
  return slice_bytes(runtime, text, begin, begin + piece.size());
}

}  // namespace minfer::jinja
