#include "core/bench.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <random>

#include "core/cancel.h"
#include "core/error.h"
#include "core/sequence.h"
#include "core/stopwatch.h"

namespace minfer {

const char* const kPrefillClock =
    "token ids in host memory to the last row's choice in host memory, wall clock";
const char* const kDecodeClock =
    "from queueing the first step to the last step's choices in host memory, wall clock; one token of each "
    "sequence a step";

namespace {

// FNV-1a over the ids: a fingerprint, not a checksum.
class Digest {
 public:
  void add(TokenId id) {
    for (int shift = 0; shift < 32; shift += 8) {
      value_ = (value_ ^ (static_cast<uint32_t>(id) >> shift & 0xff)) * 0x100000001b3;
    }
  }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 0xcbf29ce484222325;
};

// How the rows of a measurement lie in the KV cache.
struct Layout {
  int64_t n_sequences = 0;
  int64_t n_tokens = 0;  // of each
  int64_t kv_tokens() const { return n_sequences * n_tokens; }
};

// The first token that is decoded has to come from somewhere.
int32_t decode_start(const BenchOptions& options) {
  return std::max(options.depth, 1);
}

std::vector<Layout> layouts(const BenchOptions& options) {
  std::vector<Layout> all;
  for (const int32_t n : options.prefill) all.push_back({1, int64_t{options.depth} + n});
  for (const int32_t n : options.decode) {
    for (const int32_t b : options.batch) all.push_back({b, int64_t{decode_start(options)} + n});
  }
  return all;
}

// Appends `ids` to the sequence; the choice behind the last one.
RowResult append(Engine& engine, SeqId seq, std::span<const TokenId> ids) {
  Batch batch;
  const int32_t start = engine.kv_length(seq);
  for (size_t i = 0; i < ids.size(); ++i) {
    batch.add(seq, start + static_cast<int32_t>(i), ids[i],
              i + 1 == ids.size() ? Want::kArgmax : Want::kNothing);
  }
  const RowResult result = engine.forward(batch).back();
  check_finite(result, engine, 0);
  return result;
}

class Bench {
 public:
  Bench(Engine& engine, const ModelCost& cost, int32_t n_vocab, const BenchOptions& options)
      : engine_(engine),
        cost_(cost),
        options_(options),
        ids_(random_tokens(static_cast<size_t>(bench_kv_tokens(options)), n_vocab, options.seed)) {}

  Measurement prefill(int32_t n) {
    const Sequence seq(engine_, options_.depth + n);
    fill(seq, options_.depth);
    return repeat({.kind = BenchKind::kPrefill, .n_tokens = n, .cost = cost_.prefill(n, options_.depth)},
                  [&](Digest& digest) {
                    engine_.kv_truncate(seq.id(), options_.depth);
                    const Stopwatch clock;
                    const RowResult last = append(engine_, seq.id(), slice(options_.depth, n));
                    const double seconds = clock.seconds();
                    digest.add(last.argmax);
                    return seconds;
                  });
  }

  Measurement decode(int32_t n, int32_t n_sequences) {
    const int32_t start = decode_start(options_);
    std::deque<Sequence> sequences;
    fill(sequences.emplace_back(engine_, start + n), start - 1);
    while (std::ssize(sequences) < n_sequences) {
      const Sequence& seq = sequences.emplace_back(engine_, start + n);
      engine_.kv_copy(sequences.front().id(), seq.id(), start - 1);
    }
    return repeat({.kind = BenchKind::kDecode,
                   .n_tokens = n,
                   .n_sequences = n_sequences,
                   .cost = decode_cost(start, n, n_sequences)},
                  [&](Digest& digest) {
                    rewind(sequences, start - 1);
                    const Stopwatch clock;
                    for (int32_t i = 0; i < n; ++i) step(sequences, start + i, i, digest);
                    return clock.seconds();
                  });
  }

 private:
  std::span<const TokenId> slice(int32_t first, int32_t n) const {
    return std::span(ids_).subspan(static_cast<size_t>(first), static_cast<size_t>(n));
  }

  void fill(const Sequence& seq, int32_t n) {
    if (n > 0) append(engine_, seq.id(), slice(0, n));
  }

  Cost decode_cost(int32_t start, int32_t n, int32_t n_sequences) const {
    Cost cost;
    for (int32_t i = 0; i < n; ++i) {
      const Cost one = cost_.decode_step(start + i, n_sequences);
      cost.flops += one.flops;
      cost.bytes += one.bytes;
    }
    return cost;
  }

  // Back to n tokens each, and one of its own behind them.
  void rewind(const std::deque<Sequence>& sequences, int32_t n) {
    Batch batch;
    for (const Sequence& seq : sequences) {
      engine_.kv_truncate(seq.id(), n);
      batch.add(seq.id(), n, ids_[static_cast<size_t>(n) + batch.rows.size()], Want::kArgmax);
    }
    for (const RowResult& result : engine_.forward(batch)) check_finite(result, engine_, 0);
  }

  void step(const std::deque<Sequence>& sequences, int32_t pos, int32_t i, Digest& digest) {
    Batch batch;
    for (const Sequence& seq : sequences) batch.add(seq.id(), pos, kLastArgmax, Want::kArgmax);
    for (const RowResult& result : engine_.forward(batch)) {
      check_finite(result, engine_, i);
      digest.add(result.argmax);
    }
  }

  template <typename Run>
  Measurement repeat(Measurement m, Run&& run) {
    std::vector<double> seconds;
    for (int32_t i = 0; i <= options_.n_repetitions; ++i) {
      throw_if_interrupted();
      Digest digest;
      const double elapsed = run(digest);
      if (i > 0) seconds.push_back(elapsed);
      m.choices = digest.value();
    }
    m.depth = options_.depth;
    m.n_repetitions = options_.n_repetitions;
    m.seconds = Times::of(std::move(seconds));
    return m;
  }

  Engine& engine_;
  const ModelCost& cost_;
  const BenchOptions& options_;
  std::vector<TokenId> ids_;
};

}  // namespace

Times Times::of(std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  const size_t n = seconds.size();
  return {
      .median = (seconds[(n - 1) / 2] + seconds[n / 2]) / 2, .min = seconds.front(), .max = seconds.back()};
}

const char* bench_kind_name(BenchKind kind) {
  return kind == BenchKind::kPrefill ? "prefill" : "decode";
}

int32_t bench_kv_tokens(const BenchOptions& options) {
  Layout largest;
  for (const Layout& l : layouts(options)) {
    if (l.kv_tokens() > largest.kv_tokens()) largest = l;
  }
  constexpr int32_t kMost = std::numeric_limits<int32_t>::max();
  if (largest.kv_tokens() > kMost) {
    throw Error(ExitCode::kUsage,
                fmt::format("the benchmark's depth and tokens together are {} ({} x {}), and {} is the most",
                            largest.kv_tokens(), largest.n_sequences, largest.n_tokens, kMost));
  }
  return static_cast<int32_t>(largest.kv_tokens());
}

int64_t bench_context(const BenchOptions& options) {
  int64_t longest = 0;
  for (const Layout& l : layouts(options)) longest = std::max(longest, l.n_tokens);
  return longest;
}

std::vector<TokenId> random_tokens(size_t count, int32_t n_vocab, uint64_t seed) {
  std::mt19937_64 random(seed);  // its sequence is the standard's; a distribution's would be the library's
  std::vector<TokenId> ids(count);
  for (TokenId& id : ids) id = static_cast<TokenId>(random() % static_cast<uint64_t>(n_vocab));
  return ids;
}

void bench(Engine& engine, const ModelCost& cost, int32_t n_vocab, const BenchOptions& options,
           const std::function<void(const Measurement&)>& done) {
  Bench run(engine, cost, n_vocab, options);
  for (const int32_t n : options.prefill) done(run.prefill(n));
  for (const int32_t n : options.decode) {
    for (const int32_t b : options.batch) done(run.decode(n, b));
  }
}

}  // namespace minfer
