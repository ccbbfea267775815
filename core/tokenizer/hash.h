// Hashes of the tokenizer's tables: 64 x 64 -> 128-bit multiplications folded by exclusive or, as in Wang
// Yi's wyhash (2019). Good enough for open addressing; no defence against chosen keys.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace minfer {

inline uint64_t hash_mix(uint64_t a, uint64_t b) {
  const unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

inline uint64_t hash_word(uint64_t word) {
  return hash_mix(word ^ 0x9e3779b97f4a7c15u, 0xd1b54a32d192ed03u);
}

inline uint64_t hash_bytes(std::string_view text) {
  uint64_t hash = 0x8ebc6af09c88c6e3u ^ text.size();
  const char* at = text.data();
  size_t left = text.size();
  for (; left >= 8; at += 8, left -= 8) {
    uint64_t word = 0;
    std::memcpy(&word, at, 8);
    hash = hash_mix(hash ^ word, 0xd1b54a32d192ed03u);
  }
  uint64_t tail = 0;
  if (left > 0) std::memcpy(&tail, at, left);
  return hash_mix(hash ^ tail, 0xa0761d6478bd642fu);
}

}  // namespace minfer
