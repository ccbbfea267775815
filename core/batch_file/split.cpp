#include "core/batch_file/split.h"

#include <algorithm>

namespace minfer {
namespace {

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t") == std::string_view::npos;
}

// Takes the text up to `delimiter`, or all of it, off the front of `rest`, and the delimiter too.
std::string_view take_piece(std::string_view& rest, std::string_view delimiter) {
  const size_t end = rest.find(delimiter);
  const std::string_view piece = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + delimiter.size());
  return piece;
}

}  // namespace

std::vector<BatchPiece> split_batch(std::string_view bytes, BatchFormat format, std::string_view delimiter) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (bytes.starts_with(kByteOrderMark)) bytes.remove_prefix(kByteOrderMark.size());
  const bool by_lines = format != BatchFormat::kDelimited;
  std::vector<BatchPiece> pieces;
  for (int64_t number = 1; !bytes.empty(); ++number) {
    std::string_view text = take_piece(bytes, by_lines ? "\n" : delimiter);
    if (by_lines && text.ends_with('\r')) text.remove_suffix(1);
    if (by_lines && is_blank(text)) continue;
    pieces.push_back({text, number});
  }
  return pieces;
}

}  // namespace minfer
