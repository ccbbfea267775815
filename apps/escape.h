// --escape: what a shell makes hard to type, spelled out.
#pragma once

#include <string>
#include <string_view>

namespace minfer {

// \n \t \r \\ \" \', \xHH for a byte, \uHHHH and \u{H...} for a character, which is written in UTF-8;
// everything else stays. Throws Error(kUsage) with what stands there and its position for any other
// backslash.
std::string read_escapes(std::string_view text);

}  // namespace minfer
