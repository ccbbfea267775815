#include "core/stop_strings.h"

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace minfer {
namespace {

enum class Fit { kNone, kBegins, kWhole };

// How far a stop string stands at the beginning of `text`.
Fit fit(std::string_view text, std::string_view stop) {
  if (text.starts_with(stop)) return Fit::kWhole;
  return stop.starts_with(text) ? Fit::kBegins : Fit::kNone;
}

Fit best_fit(std::string_view text, const std::vector<std::string>& stops) {
  Fit best = Fit::kNone;
  for (const std::string& stop : stops) best = std::max(best, fit(text, stop));
  return best;
}

}  // namespace

StopStrings::StopStrings(std::vector<std::string> stops) : stops_(std::move(stops)) {
  const bool has_empty = std::any_of(stops_.begin(), stops_.end(), [](const auto& s) { return s.empty(); });
  if (has_empty) throw Error(ExitCode::kUsage, "--stop: an empty string would end every text");
}

std::string StopStrings::push(std::string_view piece) {
  if (matched_) return {};
  if (stops_.empty()) return std::string(piece);
  held_ += piece;
  return take(true);
}

std::string StopStrings::finish() {
  return take(false);
}

std::string StopStrings::take(bool more_may_come) {
  const Fit least = more_may_come ? Fit::kBegins : Fit::kWhole;
  Fit found = Fit::kNone;
  size_t end = 0;
  for (; end < held_.size(); ++end) {
    found = best_fit(std::string_view(held_).substr(end), stops_);
    if (found >= least) break;
  }
  matched_ = matched_ || found == Fit::kWhole;
  std::string ready = held_.substr(0, end);
  held_.erase(0, matched_ ? held_.size() : end);
  return ready;
}

}  // namespace minfer
