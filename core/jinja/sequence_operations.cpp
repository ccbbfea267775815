#include "core/jinja/sequence_operations.h"

#include <algorithm>

namespace minfer::jinja {
namespace {

struct Keyed {
  Value key, item;
};

}  // namespace

std::vector<Value> dict_items(Runtime& runtime, const Dict& dict) {
  runtime.step(dict.entries.size());
  std::vector<Value> items;
  items.reserve(dict.entries.size());
  for (const auto& [key, value] : dict.entries) items.push_back(runtime.tuple({key, value}));
  return items;
}

// A merge sort, which stays within the vector even where an order contradicts itself (NaN).
void sort_by(Runtime& runtime, std::vector<Value>& items, const KeyOf& key_of, bool is_reverse) {
  std::vector<Keyed> keyed;
  keyed.reserve(items.size());
  for (const Value& item : items) keyed.push_back({key_of(item), item});
  runtime.take_bytes(keyed.size() * sizeof(Keyed));
  std::vector<Keyed> merged(keyed.size());
  const size_t n = keyed.size();
  const auto goes_first = [&](const Keyed& right, const Keyed& left) {
    return is_reverse ? less(runtime, left.key, right.key) : less(runtime, right.key, left.key);
  };
  for (size_t width = 1; width < n; width *= 2) {
    for (size_t begin = 0; begin < n; begin += 2 * width) {
      const size_t middle = std::min(begin + width, n), end = std::min(begin + 2 * width, n);
      size_t left = begin, right = middle;
      for (size_t at = begin; at < end; ++at) {
        const bool takes_right = left == middle || (right < end && goes_first(keyed[right], keyed[left]));
        merged[at] = keyed[takes_right ? right++ : left++];
      }
    }
    keyed.swap(merged);
  }
  for (size_t i = 0; i < n; ++i) items[i] = keyed[i].item;
}

}  // namespace minfer::jinja
