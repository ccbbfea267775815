// Private to the interpreter: what methods and filters do alike with sequences.
#pragma once

#include <functional>
#include <vector>

#include "core/jinja/operations.h"

namespace minfer::jinja {

// (key, value) tuples.
std::vector<Value> dict_items(Runtime& runtime, const Dict& dict);

// Stable, by key_of(item), which is worked out once for each.
using KeyOf = std::function<Value(const Value&)>;
void sort_by(Runtime& runtime, std::vector<Value>& items, const KeyOf& key_of, bool is_reverse);

}  // namespace minfer::jinja
