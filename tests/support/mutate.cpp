#include "tests/support/mutate.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace minfer::test {

size_t Mutator::place(const std::vector<std::byte>& file, size_t n_header) {
  const bool in_header = below(4) != 0;
  return below(in_header ? std::min(n_header, file.size()) : file.size());
}

uint64_t Mutator::extreme(const std::vector<std::byte>& file, size_t at) {
  constexpr uint64_t kTop = uint64_t{1} << 63;
  const uint64_t left = file.size() - at;
  const uint64_t values[] = {0,
                             1,
                             2,
                             0x7f,
                             0x80,
                             0xff,
                             0xffff,
                             0x10000,
                             0x7fffffff,
                             0x80000000,
                             0xfffffffe,
                             0xffffffff,
                             uint64_t{1} << 32,
                             uint64_t{1} << 40,
                             uint64_t{1} << 61,
                             kTop - 1,
                             kTop,
                             kTop + 1,
                             ~uint64_t{31},
                             ~uint64_t{7},
                             ~uint64_t{1},
                             ~uint64_t{0},
                             left,
                             left - 1,
                             left + 1,
                             left / 8,
                             left / 8 + 1,
                             file.size(),
                             file.size() - 1,
                             file.size() + 1,
                             below(64),
                             below(4096),
                             random_()};
  return values[below(std::size(values))];
}

void Mutator::damage(std::vector<std::byte>& file, size_t n_header) {
  if (file.empty()) return;
  const size_t at = place(file, n_header);
  const auto here = file.begin() + static_cast<std::ptrdiff_t>(at);
  const size_t n = std::min<size_t>(1 + below(below(8) ? 16 : 256), file.size() - at);
  const auto end = here + static_cast<std::ptrdiff_t>(n);
  switch (below(8)) {
    case 0:
      *here ^= std::byte{1} << below(8);
      break;
    case 1:
      *here = static_cast<std::byte>(below(256));
      break;
    case 2:
    case 3: {
      const uint64_t value = extreme(file, at);
      std::memcpy(&*here, &value, std::min<size_t>(4, file.size() - at));
      break;
    }
    case 4: {
      const uint64_t value = extreme(file, at);
      std::memcpy(&*here, &value, std::min<size_t>(8, file.size() - at));
      break;
    }
    case 5:
      file.erase(here, end);
      break;
    case 6:
      file.insert(here, n, static_cast<std::byte>(below(256)));
      break;
    case 7: {
      const std::vector<std::byte> chunk(here, end);
      file.insert(file.begin() + static_cast<std::ptrdiff_t>(place(file, n_header)), chunk.begin(),
                  chunk.end());
      break;
    }
  }
}

std::vector<std::byte> Mutator::mutate(std::span<const std::byte> original, size_t n_header) {
  std::vector<std::byte> file(original.begin(), original.end());
  for (uint64_t n = below(2) ? 1 : 1 + below(4); n > 0; --n) damage(file, n_header);
  return {file.begin(), file.end()};
}

}  // namespace minfer::test
