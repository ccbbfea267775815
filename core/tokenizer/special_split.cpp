#include "core/tokenizer/special_split.h"

#include <algorithm>
#include <limits>
#include <queue>

namespace minfer {
namespace {

struct Candidate {
  size_t size;
  size_t begin;
  TokenId id;
  bool operator<(const Candidate& other) const {
    return size != other.size ? size < other.size : begin > other.begin;
  }
};

// Bytes from `at` to the next literal one; 0 inside a literal range.
size_t bytes_to_literal(std::span<const ByteRange> literal, size_t at) {
  const auto ends_behind = [](size_t a, const ByteRange& range) { return a < range.end; };
  const auto next = std::upper_bound(literal.begin(), literal.end(), at, ends_behind);
  if (next == literal.end()) return std::numeric_limits<size_t>::max();
  return next->begin > at ? next->begin - at : 0;
}

}  // namespace

SpecialSplitter::SpecialSplitter(const Vocab& vocab, const std::vector<TokenId>& tokens) {
  for (const TokenId id : tokens) {
    if (!vocab.text(id).empty()) entries_.push_back({vocab.text(id), id, vocab.is_hidden(id)});
  }
  const auto less = [](const Entry& a, const Entry& b) {
    return a.text != b.text ? a.text < b.text : a.id > b.id;
  };
  std::sort(entries_.begin(), entries_.end(), less);
  // Of equal texts the last id stays, as in Vocab::find.
  entries_.erase(std::unique(entries_.begin(), entries_.end(),
                             [](const Entry& a, const Entry& b) { return a.text == b.text; }),
                 entries_.end());
  for (uint32_t i = 0; i < entries_.size(); ++i) {
    auto& [first, last] = by_first_[static_cast<uint8_t>(entries_[i].text[0])];
    if (last == 0) first = i;
    last = i + 1;
  }
}

const SpecialSplitter::Entry* SpecialSplitter::longest(std::string_view text, size_t limit,
                                                       size_t hidden_limit) const {
  auto [first, last] = by_first_[static_cast<uint8_t>(text[0])];
  const Entry* best = nullptr;
  limit = std::min(limit, text.size());
  // Entries first..last share their first `depth` bytes with the text; one that has no more sorts before the
  // others.
  for (size_t depth = 1; first < last && depth <= limit; ++depth) {
    if (entries_[first].text.size() == depth) {
      if (!entries_[first].hidden || depth <= hidden_limit) best = &entries_[first];
      ++first;
    }
    if (depth == limit) break;
    const auto byte = static_cast<uint8_t>(text[depth]);
    const auto begin = entries_.begin();
    const auto below = [&](const Entry& e, uint8_t b) { return static_cast<uint8_t>(e.text[depth]) < b; };
    const auto above = [&](uint8_t b, const Entry& e) { return b < static_cast<uint8_t>(e.text[depth]); };
    const auto low = std::lower_bound(begin + first, begin + last, byte, below);
    const auto high = std::upper_bound(low, begin + last, byte, above);
    first = static_cast<uint32_t>(low - begin);
    last = static_cast<uint32_t>(high - begin);
  }
  return best;
}

std::vector<SpecialMatch> SpecialSplitter::split(std::string_view text,
                                                 std::span<const ByteRange> literal) const {
  std::vector<SpecialMatch> matches;
  if (entries_.empty()) return matches;
  std::vector<Candidate> found;
  for (size_t at = 0; at < text.size(); ++at) {
    if (by_first_[static_cast<uint8_t>(text[at])].second == 0) continue;
    const Entry* const entry = longest(text.substr(at), text.size(), bytes_to_literal(literal, at));
    if (entry) found.push_back({entry->text.size(), at, entry->id});
  }
  if (found.empty()) return matches;

  std::priority_queue<Candidate> queue({}, std::move(found));
  std::vector<bool> taken(text.size());
  while (!queue.empty()) {
    const Candidate top = queue.top();
    queue.pop();
    if (taken[top.begin]) continue;
    // Everything taken so far is at least as long as this one, so it overlaps at an end or not at all.
    if (taken[top.begin + top.size - 1]) {
      const Entry* const shorter =
          longest(text.substr(top.begin), top.size - 1, bytes_to_literal(literal, top.begin));
      if (shorter) queue.push({shorter->text.size(), top.begin, shorter->id});
      continue;
    }
    std::fill_n(taken.begin() + static_cast<std::ptrdiff_t>(top.begin), top.size, true);
    matches.push_back({top.begin, top.id});
  }
  std::sort(matches.begin(), matches.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
  return matches;
}

}  // namespace minfer
