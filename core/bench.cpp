#include "core/bench.h"

#include <algorithm>
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
    "from queueing the first step to the last step's choice in host memory, wall clock; one token a step";

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
        seq_(engine, bench_kv_tokens(options)),
        ids_(random_tokens(static_cast<size_t>(bench_kv_tokens(options)), n_vocab, options.seed)) {}

  Measurement prefill(int32_t n) {
    fill(options_.depth);
    return repeat({.kind = BenchKind::kPrefill, .n_tokens = n, .cost = cost_.prefill(n, options_.depth)},
                  [&](Digest& digest) {
                    engine_.kv_truncate(seq_.id(), options_.depth);
                    const Stopwatch clock;
                    const RowResult last = append(engine_, seq_.id(), slice(options_.depth, n));
                    const double seconds = clock.seconds();
                    digest.add(last.argmax);
                    return seconds;
                  });
  }

  Measurement decode(int32_t n) {
    const int32_t start = std::max(options_.depth, 1);  // a first token has to come from somewhere
    fill(start);
    Cost cost;
    for (int32_t i = 0; i < n; ++i) {
      const Cost step = cost_.decode_step(start + i);
      cost.flops += step.flops;
      cost.bytes += step.bytes;
    }
    return repeat({.kind = BenchKind::kDecode, .n_tokens = n, .cost = cost}, [&](Digest& digest) {
      engine_.kv_truncate(seq_.id(), start - 1);
      append(engine_, seq_.id(), slice(start - 1, 1));
      const Stopwatch clock;
      for (int32_t i = 0; i < n; ++i) {
        Batch batch;
        batch.add(seq_.id(), start + i, kLastArgmax, Want::kArgmax);
        const RowResult result = engine_.forward(batch).back();
        check_finite(result, engine_, i);
        digest.add(result.argmax);
      }
      return clock.seconds();
    });
  }

 private:
  std::span<const TokenId> slice(int32_t first, int32_t n) const {
    return std::span(ids_).subspan(static_cast<size_t>(first), static_cast<size_t>(n));
  }

  void fill(int32_t n) {
    engine_.kv_truncate(seq_.id(), 0);
    if (n > 0) append(engine_, seq_.id(), slice(0, n));
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
  Sequence seq_;
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
  int64_t n = 0;
  for (const int32_t p : options.prefill) n = std::max(n, int64_t{options.depth} + p);
  for (const int32_t d : options.decode) n = std::max(n, int64_t{std::max(options.depth, 1)} + d);
  if (n > std::numeric_limits<int32_t>::max()) {
    throw Error(ExitCode::kUsage, "the benchmark's depth and tokens together are " + std::to_string(n) +
                                      ", and 2147483647 is the most");
  }
  return static_cast<int32_t>(n);
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
  for (const int32_t n : options.decode) done(run.decode(n));
}

}  // namespace minfer
