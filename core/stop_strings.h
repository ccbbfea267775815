// Ends a text where one of several strings begins, however the text arrives in pieces.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace minfer {

class StopStrings {
 public:
  // Empty strings are refused: Error(kUsage).
  explicit StopStrings(std::vector<std::string> stops);

  // Appends a piece; returns what is certain to stand before any match. At most the longest possible beginning
  // of a match is held back. Once matched() it returns nothing more.
  std::string push(std::string_view piece);
  // What was held back, as it is; empty after a match.
  std::string finish();
  bool matched() const { return matched_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  bool matched_ = false;
};

}  // namespace minfer
