// Pairwise merging, which both kinds of BPE share: the best adjacent pair becomes one symbol, again and
// again. A linked list and a heap of (rank, left symbol), so n symbols take O(n log n) however long a run is.
// Each symbol knows what it and its right neighbour make today; an entry of the heap that says something else
// is stale and is dropped.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "core/batch.h"

namespace minfer {

// What a pair becomes. Lower ranks merge first.
struct Merge {
  uint32_t rank = 0;
  TokenId id = -1;  // -1: the pair does not merge
};

struct Symbol {
  uint32_t begin = 0;  // in the text that is merged
  uint32_t size = 0;   // bytes; 0: merged into its left neighbour
  int32_t prev = -1;
  int32_t next = -1;
  TokenId id = -1;
  Merge with_next;
};

class Merger {
 public:
  void clear() { symbols_.clear(); }
  void push(uint32_t begin, uint32_t size, TokenId id) {
    const auto n = static_cast<int32_t>(symbols_.size());
    if (n > 0) symbols_.back().next = n;
    symbols_.push_back({begin, size, n - 1, -1, id, {}});
  }

  // `find_merge(left, right)` -> Merge. Among equal ranks the leftmost pair goes first.
  template <typename FindMerge>
  void run(const FindMerge& find_merge) {
    heap_.clear();
    for (uint32_t i = 0; i + 1 < symbols_.size(); ++i) update(i, find_merge);
    std::make_heap(heap_.begin(), heap_.end(), std::greater<>());

    while (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
      const uint64_t top = heap_.back();
      heap_.pop_back();
      const auto left = static_cast<uint32_t>(top);
      Symbol& l = symbols_[left];
      if (l.size == 0 || l.with_next.id < 0 || key(l.with_next.rank, left) != top) continue;
      Symbol& r = symbols_[static_cast<size_t>(l.next)];
      l.size += r.size;
      l.id = l.with_next.id;
      l.next = r.next;
      r.size = 0;
      if (l.next >= 0) symbols_[static_cast<size_t>(l.next)].prev = static_cast<int32_t>(left);
      if (update(left, find_merge)) std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
      if (l.prev < 0) continue;
      if (update(static_cast<uint32_t>(l.prev), find_merge)) {
        std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
      }
    }
  }

  template <typename Visit>
  void for_each(const Visit& visit) const {
    for (int32_t i = symbols_.empty() ? -1 : 0; i >= 0; i = symbols_[static_cast<size_t>(i)].next) {
      visit(symbols_[static_cast<size_t>(i)]);
    }
  }

 private:
  static uint64_t key(uint32_t rank, uint32_t left) { return (uint64_t{rank} << 32) | left; }

  // Whether symbol `left` merges with its neighbour, which puts an entry at the end of heap_.
  template <typename FindMerge>
  bool update(uint32_t left, const FindMerge& find_merge) {
    Symbol& l = symbols_[left];
    l.with_next = l.next < 0 ? Merge{} : find_merge(l, symbols_[static_cast<size_t>(l.next)]);
    if (l.with_next.id < 0) return false;
    heap_.push_back(key(l.with_next.rank, left));
    return true;
  }

  std::vector<Symbol> symbols_;
  std::vector<uint64_t> heap_;
};

}  // namespace minfer
