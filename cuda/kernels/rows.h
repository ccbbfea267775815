// What every row of a batch needs to know about itself, on the device. Positions are data, never structure: a captured
// graph is valid for any of them.
#pragma once

#include <cstdint>

namespace minfer::cu {

// One entry a row (token) of the batch.
struct RowTable {
  const int32_t* pos = nullptr;         // [n_tokens] position in its sequence
  const int32_t* first_slot = nullptr;  // [n_tokens] first KV slot of its sequence; position p lives in first_slot + p
};

// One layer's KV cache.
struct KvArena {
  void* k = nullptr;  // half [n_head_kv, n_slots, head_dim]
  void* v = nullptr;  // half [n_head_kv, n_slots, head_dim]
  int n_slots = 0;
};

}  // namespace minfer::cu
