// Damaged copies of a file, the same ones on every machine for the same seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

namespace minfer::test {

class Mutator {
 public:
  explicit Mutator(uint64_t seed) : random_(seed) {}

  // A copy with one damage, or up to 4: flipped bits, set bytes, a u32 or u64 overwritten with an extreme
  // value or with one near the file's own size, a chunk deleted, inserted or doubled. Three in four strike
  // within the first `n_header` bytes. The block is exactly as long as its contents, so that AddressSanitizer
  // sees a read past the end.
  std::vector<std::byte> mutate(std::span<const std::byte> original, size_t n_header);

 private:
  uint64_t below(uint64_t n) { return n ? random_() % n : 0; }
  size_t place(const std::vector<std::byte>& file, size_t n_header);
  void damage(std::vector<std::byte>& file, size_t n_header);
  uint64_t extreme(const std::vector<std::byte>& file, size_t at);

  std::mt19937_64 random_;
};

}  // namespace minfer::test
