#include "core/utf8_stream.h"

#include <algorithm>
#include <utility>

#include "core/utf8.h"

namespace minfer {
namespace {

// How many bytes at the end of `text` are a prefix of a character that more bytes may complete: 0 to 3.
size_t incomplete_tail(std::string_view text) {
  const size_t longest = std::min<size_t>(3, text.size());
  for (size_t n = longest; n > 0; --n) {
    if (utf8_char_size(text.substr(text.size() - n)) == kUtf8Incomplete) return n;
  }
  return 0;
}

}  // namespace

std::string Utf8Stream::push(std::string_view bytes) {
  std::string ready = std::exchange(pending_, {});
  ready += bytes;
  const size_t n_held = incomplete_tail(ready);
  pending_ = ready.substr(ready.size() - n_held);
  ready.resize(ready.size() - n_held);
  return ready;
}

std::string Utf8Stream::finish() {
  return std::exchange(pending_, {});
}

}  // namespace minfer
