// A batch file cut into requests that are still text.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace minfer {

enum class BatchFormat {
  kJsonLines,  // one JSON object a line
  kLines,      // one prompt a line
  kDelimited,  // prompts with a delimiter between
};

struct BatchPiece {
  std::string_view text;
  int64_t number = 0;  // of the line, blank ones counted, or of the piece between delimiters; from 1
};

// A byte order mark at the start is no part of the text. Lines end with LF or CRLF, the last one also with
// the text; those of nothing but spaces and tabs are left out. Between delimiters (not empty) every byte
// counts, line ends too; nothing behind the last delimiter is no piece. The pieces look into `bytes`.
std::vector<BatchPiece> split_batch(std::string_view bytes, BatchFormat format,
                                    std::string_view delimiter = {});

}  // namespace minfer
