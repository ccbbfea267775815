#include "core/jinja/unicode_case.h"

#include <algorithm>
#include <span>

#include "core/jinja/runtime.h"
#include "core/jinja/unicode_case_tables.h"
#include "core/utf8.h"

namespace minfer::jinja {
namespace {

constexpr bool is_ascii_upper(uint32_t code) {
  return code >= 'A' && code <= 'Z';
}

constexpr bool is_ascii_lower(uint32_t code) {
  return code >= 'a' && code <= 'z';
}

const SpecialCase* find_special(std::span<const SpecialCase> specials, uint32_t code) {
  const auto found = std::lower_bound(specials.begin(), specials.end(), code,
                                      [](const SpecialCase& each, uint32_t c) { return each.code < c; });
  return found != specials.end() && found->code == code ? &*found : nullptr;
}

uint32_t map_range(std::span<const CaseRange> ranges, uint32_t code) {
  auto range = std::upper_bound(ranges.begin(), ranges.end(), code,
                                [](uint32_t c, const CaseRange& each) { return c < each.first; });
  // Ranges of step 2 may interleave with their neighbours.
  for (int i = 0; i < 3 && range != ranges.begin(); ++i) {
    --range;
    if (code <= range->last && (code - range->first) % range->step == 0) {
      return static_cast<uint32_t>(static_cast<int32_t>(code) + range->delta);
    }
  }
  return code;
}

std::string mapped(std::string_view character, std::span<const CaseRange> ranges,
                   std::span<const SpecialCase> specials) {
  const uint32_t code = code_point(character);
  if (code == kMalformed) return std::string(character);
  if (const SpecialCase* special = find_special(specials, code)) return std::string(special->mapped);
  return std::string(utf8_encode(map_range(ranges, code)).view());
}

// Greek: a sigma that ends a word has its own lower case.
bool is_final_sigma(std::string_view bytes, size_t at, size_t end) {
  if (code_point(bytes.substr(at, end - at)) != 0x3a3 || at == 0) return false;
  const size_t before = previous_char(bytes, at);
  if (!is_cased(bytes.substr(before, at - before))) return false;
  return end == bytes.size() || !is_cased(bytes.substr(end, next_char(bytes, end) - end));
}

// Writes map(whole text, begin of a character, its end) for every character.
template <typename Map>
const Text* map_chars(Runtime& runtime, const Text& text, Map&& map) {
  runtime.scan(text.bytes.size() * 4);
  TextBuilder out(runtime);
  size_t at = 0;
  for_each_stretch(text, [&](std::string_view stretch, bool is_input) {
    std::string written;
    const size_t stretch_end = at + stretch.size();
    while (at < stretch_end) {
      const size_t end = next_char(text.bytes, at);
      written += map(at, end);
      at = end;
    }
    out.add(written, is_input);
  });
  return out.finish();
}

}  // namespace

std::string upper_of(std::string_view character) {
  const auto byte = static_cast<uint8_t>(character[0]);
  if (byte < 0x80) return std::string(1, static_cast<char>(is_ascii_lower(byte) ? byte - 32 : byte));
  return mapped(character, kUpperRanges, kUpperSpecials);
}

std::string lower_of(std::string_view character) {
  const auto byte = static_cast<uint8_t>(character[0]);
  if (byte < 0x80) return std::string(1, static_cast<char>(is_ascii_upper(byte) ? byte + 32 : byte));
  return mapped(character, kLowerRanges, kLowerSpecials);
}

std::string title_of(std::string_view character) {
  const SpecialCase* special = find_special(kTitleSpecials, code_point(character));
  return special ? std::string(special->mapped) : upper_of(character);
}

bool is_upper(std::string_view character) {
  const uint32_t code = code_point(character);
  return code < 0x80 ? is_ascii_upper(code) : lower_of(character) != character;
}

bool is_lower(std::string_view character) {
  const uint32_t code = code_point(character);
  return code < 0x80 ? is_ascii_lower(code) : upper_of(character) != character;
}

const Text* upper(Runtime& runtime, const Text& text) {
  return map_chars(runtime, text,
                   [&](size_t at, size_t end) { return upper_of(text.bytes.substr(at, end - at)); });
}

const Text* lower(Runtime& runtime, const Text& text) {
  return map_chars(runtime, text, [&](size_t at, size_t end) {
    return is_final_sigma(text.bytes, at, end) ? "\xcf\x82" : lower_of(text.bytes.substr(at, end - at));
  });
}

const Text* title(Runtime& runtime, const Text& text) {
  bool is_in_word = false;
  return map_chars(runtime, text, [&](size_t at, size_t end) {
    const std::string_view character = text.bytes.substr(at, end - at);
    const bool continues = is_in_word;
    is_in_word = is_cased(character);
    return continues ? lower_of(character) : title_of(character);
  });
}

const Text* capitalize(Runtime& runtime, const Text& text) {
  return map_chars(runtime, text, [&](size_t at, size_t end) {
    const std::string_view character = text.bytes.substr(at, end - at);
    if (at == 0) return title_of(character);
    return is_final_sigma(text.bytes, at, end) ? "\xcf\x82" : lower_of(character);
  });
}

const Text* swap_case(Runtime& runtime, const Text& text) {
  return map_chars(runtime, text, [&](size_t at, size_t end) {
    const std::string_view character = text.bytes.substr(at, end - at);
    return is_upper(character) ? lower_of(character) : upper_of(character);
  });
}

}  // namespace minfer::jinja
