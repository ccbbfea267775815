// A stretch of a text.
#pragma once

#include <cstddef>

namespace minfer {

struct ByteRange {
  size_t begin = 0, end = 0;  // [begin, end)
  bool operator==(const ByteRange&) const = default;
};

}  // namespace minfer
