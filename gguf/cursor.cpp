#include "gguf/cursor.h"

#include <limits>

namespace minfer::gguf {

std::string Cursor::place() const {
  if (!kind_) return "header";
  std::string text = kind_;
  text += ' ' + std::to_string(index_);
  if (!name_.empty()) text += ' ' + quoted(name_);
  return text;
}

void Cursor::fail(const std::string& why) const {
  throw Error(printable(file_name_) + ": " + place() + ": " + why);
}

std::span<const std::byte> Cursor::take(uint64_t n_bytes, const char* what) {
  if (n_bytes > left()) {
    const uint64_t room = std::numeric_limits<uint64_t>::max() - position_;
    const uint64_t needed = n_bytes > room ? std::numeric_limits<uint64_t>::max() : position_ + n_bytes;
    throw Error(printable(file_name_) + ": has " + std::to_string(bytes_.size()) + " bytes, needs at least " +
                std::to_string(needed) + " for the " + what + " of " + place() +
                ": incomplete download, or damaged?");
  }
  const auto taken = bytes_.subspan(position_, n_bytes);
  position_ += n_bytes;
  return taken;
}

std::string_view Cursor::read_string(const char* what) {
  const auto n_bytes = read<uint64_t>(what);
  const auto text = take(n_bytes, what);
  return {reinterpret_cast<const char*>(text.data()), text.size()};
}

void Cursor::require_room(uint64_t n, uint64_t min_bytes_each, const char* what) const {
  if (n <= left() / min_bytes_each) return;
  fail(std::to_string(n) + ' ' + what + " of at least " + std::to_string(min_bytes_each) +
       " bytes each, but the file has " + std::to_string(left()) + " bytes left of " +
       std::to_string(bytes_.size()) + ": incomplete download, or damaged?");
}

}  // namespace minfer::gguf
