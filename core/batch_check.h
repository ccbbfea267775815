// The contract of a batch (core/batch.h), checked the same way by every engine.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "core/batch.h"

namespace minfer {

// A sequence as a batch meets it.
struct SequenceState {
  int32_t length = 0;
  int32_t room = 0;                    // tokens that were reserved
  std::optional<TokenId> last_argmax;  // what its last row that asked for a result chose
};

// The batch's rows, with ids in place of kLastArgmax. `find` knows the engine's sequences. Throws
// Error(kRuntime) that names the row: no such sequence, a position that is not the next one or has no room, a
// token outside 0 .. n_vocab-1, rows of a sequence that do not stand together, a last argmax that does not
// exist yet.
std::vector<Row> checked_rows(const Batch& batch, int32_t n_vocab,
                              const std::function<std::optional<SequenceState>(SeqId)>& find);

}  // namespace minfer
