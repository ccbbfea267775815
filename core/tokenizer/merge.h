// Pairwise merging, which both kinds of BPE share: the best adjacent pair becomes one symbol, again and
// again. Linked list and heap, so n symbols take O(n log n) however long a run is; entries of the heap that a
// merge has made stale are told by their size and skipped when they surface.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/batch.h"

namespace minfer {

struct Symbol {
  uint32_t begin = 0;  // in the text that is merged
  uint32_t size = 0;   // bytes; 0: merged into its left neighbour
  int32_t prev = -1;
  int32_t next = -1;
  TokenId id = -1;
};

// What a pair becomes. Lower ranks merge first.
struct Merge {
  uint32_t rank = 0;
  TokenId id = -1;  // -1: the pair does not merge
};

class Merger {
 public:
  void clear() { symbols_.clear(); }
  void push(uint32_t size, TokenId id) {
    const auto n = static_cast<int32_t>(symbols_.size());
    const uint32_t begin = n == 0 ? 0 : symbols_.back().begin + symbols_.back().size;
    if (n > 0) symbols_.back().next = n;
    symbols_.push_back({begin, size, n - 1, -1, id});
  }

  // `find_merge(left, right)` -> Merge. Among equal ranks the leftmost pair goes first.
  template <typename FindMerge>
  void run(const FindMerge& find_merge) {
    heap_.clear();
    const auto consider = [&](int32_t left, int32_t right) {
      if (left < 0 || right < 0) return false;
      const Symbol& l = symbols_[static_cast<size_t>(left)];
      const Symbol& r = symbols_[static_cast<size_t>(right)];
      const Merge merge = find_merge(l, r);
      if (merge.id < 0) return false;
      const uint64_t key = (uint64_t{merge.rank} << 32) | static_cast<uint32_t>(left);
      heap_.push_back({key, right, l.size + r.size, merge.id});
      return true;
    };
    for (int32_t i = 1; i < static_cast<int32_t>(symbols_.size()); ++i) consider(i - 1, i);
    std::make_heap(heap_.begin(), heap_.end());

    while (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end());
      const Pair pair = heap_.back();
      heap_.pop_back();
      const auto left = static_cast<int32_t>(pair.key & 0xffffffffu);
      Symbol& l = symbols_[static_cast<size_t>(left)];
      Symbol& r = symbols_[static_cast<size_t>(pair.right)];
      if (l.size == 0 || r.size == 0 || l.size + r.size != pair.size) continue;
      l.size = pair.size;
      l.id = pair.id;
      l.next = r.next;
      r.size = 0;
      if (l.next >= 0) symbols_[static_cast<size_t>(l.next)].prev = left;
      if (consider(l.prev, left)) std::push_heap(heap_.begin(), heap_.end());
      if (consider(left, l.next)) std::push_heap(heap_.begin(), heap_.end());
    }
  }

  template <typename Visit>
  void for_each(const Visit& visit) const {
    for (int32_t i = symbols_.empty() ? -1 : 0; i >= 0; i = symbols_[static_cast<size_t>(i)].next) {
      visit(symbols_[static_cast<size_t>(i)]);
    }
  }

 private:
  struct Pair {
    uint64_t key;  // rank, then index of the left symbol
    int32_t right;
    uint32_t size;
    TokenId id;
    bool operator<(const Pair& other) const {
      return key > other.key;
    }  // the standard heap's top is the largest
  };

  std::vector<Symbol> symbols_;
  std::vector<Pair> heap_;
};

}  // namespace minfer
