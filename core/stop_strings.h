// Ends a text where one of several strings begins, however the text arrives in pieces.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace minfer {

// Where several match, the one that begins first counts, as if the whole text were searched for each of them.
// So a match stays open while a longer string that begins before it may still become whole: with "b" and
// "abc", "ab" holds back both letters until the next one decides. How the text is cut into pieces makes no
// difference.
class StopStrings {
 public:
  // Empty strings are refused: Error(kUsage).
  explicit StopStrings(std::vector<std::string> stops);

  // Appends a piece; returns what is certain to stand before any match. At most the longest possible
  // beginning of a match is held back. Once matched() it returns nothing more.
  std::string push(std::string_view piece);
  // No more will come: what was held back, up to a match that was still open (then matched()).
  std::string finish();
  bool matched() const { return matched_; }

 private:
  std::string take(bool more_may_come);

  std::vector<std::string> stops_;
  std::string held_;
  bool matched_ = false;
};

}  // namespace minfer
