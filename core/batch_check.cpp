#include "core/batch_check.h"

#include <spdlog/fmt/fmt.h>

#include <set>

#include "core/error.h"

namespace minfer {
namespace {

template <typename... Args>
[[noreturn]] void refuse(size_t row, fmt::format_string<Args...> text, Args&&... args) {
  throw Error(ExitCode::kRuntime,
              fmt::format("batch row {}: {}", row, fmt::format(text, std::forward<Args>(args)...)));
}

TokenId resolve_token(const Batch& batch, size_t i, const SequenceState& sequence) {
  const Row& row = batch.rows[i];
  if (row.token != kLastArgmax) return row.token;
  for (size_t j = i; j > 0 && batch.rows[j - 1].seq == row.seq; --j) {
    if (batch.rows[j - 1].want != Want::kNothing) {
      refuse(i, "the last argmax of sequence {} is that of row {} of the same batch", row.seq, j - 1);
    }
  }
  if (!sequence.last_argmax) refuse(i, "sequence {} has no last argmax", row.seq);
  return *sequence.last_argmax;
}

}  // namespace

std::vector<Row> checked_rows(const Batch& batch, int32_t n_vocab,
                              const std::function<std::optional<SequenceState>(SeqId)>& find) {
  std::vector<Row> rows = batch.rows;
  std::set<SeqId> seen;
  std::optional<SequenceState> sequence;
  for (size_t i = 0; i < rows.size(); ++i) {
    Row& row = rows[i];
    const bool first = i == 0 || rows[i - 1].seq != row.seq;
    if (first) sequence = find(row.seq);
    if (!sequence) refuse(i, "no sequence {}", row.seq);
    if (first && !seen.insert(row.seq).second) {
      refuse(i, "sequence {} has rows before, and not next to this one", row.seq);
    }
    if (row.pos >= sequence->room) {
      refuse(i, "position {}, but sequence {} has room for {} tokens", row.pos, row.seq, sequence->room);
    }
    const int32_t next = first ? sequence->length : rows[i - 1].pos + 1;
    if (row.pos != next) refuse(i, "position {} of sequence {}, needs {}", row.pos, row.seq, next);
    if (row.token != kLastArgmax && (row.token < 0 || row.token >= n_vocab)) {
      refuse(i, "token {} is not in 0..{}", row.token, n_vocab - 1);
    }
    row.token = resolve_token(batch, i, *sequence);
  }
  return rows;
}

}  // namespace minfer
