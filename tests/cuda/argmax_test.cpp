#include "cuda/kernels/argmax.h"

#include <bit>
#include <cstring>
#include <string>

#include "core/error.h"
#include "tests/cuda/gpu.h"
#include "tests/cuda/guarded.h"
#include "tests/cuda/timing.h"

namespace minfer::test {
namespace {

// Uniform in (-8, 8), 2^24 levels: cheaper than a normal distribution where there are millions.
std::vector<float> random_logits(size_t n, uint64_t seed) {
  std::vector<float> out(n);
  uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
  for (float& v : out) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    v = static_cast<float>(static_cast<int32_t>(state >> 40) - (1 << 23)) * 0x1p-20f;
  }
  return out;
}

cu::Choice oracle(std::span<const float> row, int n_used) {
  cu::Choice c{-1, -INFINITY, 0, 1};
  float second = -INFINITY;
  for (size_t i = 0; i < row.size(); ++i) {
    if (!std::isfinite(row[i])) c.finite = 0;
    if (static_cast<int>(i) >= n_used || std::isnan(row[i])) continue;
    if (row[i] > c.max_logit) {
      second = c.max_logit;
      c.max_logit = row[i];
      c.id = static_cast<int32_t>(i);
    } else {
      second = std::max(second, row[i]);
    }
  }
  c.margin = c.max_logit == second ? 0.0f : c.max_logit - second;
  if (c.id < 0) c.max_logit = c.margin = NAN;
  return c;
}

// `offset` moves the logits off their 16-byte alignment.
std::vector<cu::Choice> run(const std::vector<float>& logits, int n_vocab, int n_used, int offset = 0) {
  const int n_rows = static_cast<int>(logits.size()) / n_vocab;
  const cu::DeviceBuffer<float> d(logits.size() + offset);
  cu::check(cudaMemcpy(d.data() + offset, logits.data(), logits.size() * 4, cudaMemcpyHostToDevice),
            "upload");
  const Guarded<cu::Choice> out(n_rows);
  const Guarded<uint8_t> scratch(cu::argmax_scratch_bytes(n_rows));
  const cu::Stream stream;
  cu::argmax({.logits = d.data() + offset,
              .out = out.data(),
              .n_rows = n_rows,
              .n_vocab = n_vocab,
              .n_vocab_used = n_used,
              .scratch = scratch.data()},
             stream.get());
  stream.synchronize("argmax test");
  scratch.read();  // its guard
  return out.read();
}

bool same_float(float a, float b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

int n_wrong(const std::vector<cu::Choice>& got, const std::vector<float>& logits, int n_vocab, int n_used) {
  int wrong = 0;
  for (size_t r = 0; r < got.size(); ++r) {
    const cu::Choice want = oracle(std::span(logits).subspan(r * n_vocab, n_vocab), n_used);
    wrong += !(got[r].id == want.id && same_float(got[r].max_logit, want.max_logit) &&
               same_float(got[r].margin, want.margin) && got[r].finite == want.finite);
  }
  return wrong;
}

}  // namespace

TEST_CASE("argmax: id, logit, margin and finite flag are exact at every length", "[cuda][argmax]") {
  MINFER_REQUIRE_GPU();
  for (const int n : {1,    2,     3,     4,     5,     31,    1000,  1023,   1024,   1025,
                      4099, 32000, 32001, 49152, 65536, 65537, 65540, 151936, 152064, 256000}) {
    for (const int n_rows : {1, 3}) {
      for (const int n_used : {n, std::max(1, n - 7)}) {
        INFO("n_vocab " << n << ", used " << n_used << ", " << n_rows << " rows");
        const auto logits = random_logits(static_cast<size_t>(n) * n_rows, n + n_rows);
        CHECK(n_wrong(run(logits, n, n_used), logits, n, n_used) == 0);
        CHECK(n_wrong(run(logits, n, n_used, 1), logits, n, n_used) == 0);
      }
    }
  }
}

TEST_CASE("argmax: the lowest id among equals, wherever they stand", "[cuda][argmax]") {
  MINFER_REQUIRE_GPU();
  const int n = 152064;
  const std::vector<std::pair<int, int>> pairs = {{0, 1},         {0, n - 1},   {3, 4},       {3, 1027},
                                                  {127, 128},     {1023, 1024}, {3071, 3072}, {5000, 140000},
                                                  {n - 2, n - 1}, {1024, 1025}};
  std::vector<float> logits;
  for (size_t r = 0; r < pairs.size(); ++r) {
    auto row = random_logits(n, r);
    row[pairs[r].first] = row[pairs[r].second] = 9.0f;
    logits.insert(logits.end(), row.begin(), row.end());
  }
  const auto got = run(logits, n, n);
  for (size_t r = 0; r < pairs.size(); ++r) {
    CHECK(got[r].id == pairs[r].first);
    CHECK(got[r].margin == 0.0f);
  }
  std::vector<float> coarse = random_logits(n, 99);  // 16 levels: thousands of equals
  for (float& v : coarse) v = std::floor(v);
  CHECK(n_wrong(run(coarse, n, n), coarse, n, n) == 0);
  const std::vector<float> flat(n, -3.5f);
  CHECK(run(flat, n, n)[0].id == 0);
  CHECK(run(flat, n, n)[0].margin == 0.0f);
}

TEST_CASE("argmax: the largest and the second largest, side by side or far apart", "[cuda][argmax]") {
  MINFER_REQUIRE_GPU();
  const int n = 49152;
  for (const auto& [best, second] :
       {std::pair{7, 6}, {6, 7}, {4, 1028}, {1028, 4}, {0, n - 1}, {n - 1, 0}, {2047, 2048}}) {
    INFO(best << " over " << second);
    auto logits = random_logits(n, 3);
    logits[best] = 12.5f;
    logits[second] = 12.25f;
    const auto got = run(logits, n, n)[0];
    CHECK(got.id == best);
    CHECK(got.max_logit == 12.5f);
    CHECK(got.margin == 0.25f);
  }
}

TEST_CASE("argmax: NaN and infinities are seen, and a NaN is never chosen", "[cuda][argmax]") {
  MINFER_REQUIRE_GPU();
  const int n = 32000;
  for (const float poison : {NAN, -NAN, INFINITY, -INFINITY}) {
    for (const int at : {0, 1, 511, 1024, 20001, n - 1}) {
      INFO(poison << " at " << at);
      auto logits = random_logits(n, at);
      logits[at] = poison;
      const auto got = run(logits, n, n);
      CHECK(got[0].finite == 0);
      CHECK(n_wrong(got, logits, n, n) == 0);
      const auto unused = run(logits, n, std::max(1, at));  // behind the ids in use it still counts
      CHECK(unused[0].finite == 0);
      CHECK(n_wrong(unused, logits, n, std::max(1, at)) == 0);
    }
  }
  const std::vector<float> nothing(n, NAN), lowest(n, -INFINITY), two(n, INFINITY);
  CHECK(run(nothing, n, n)[0].id == -1);
  CHECK(run(nothing, n, n)[0].finite == 0);
  CHECK(std::isnan(run(nothing, n, n)[0].max_logit));
  CHECK(run(lowest, n, n)[0].id == -1);
  CHECK(run(two, n, n)[0].id == 0);
  CHECK(run(two, n, n)[0].margin == 0.0f);
}

TEST_CASE("argmax: the same bits at every run, alone or among 64 rows", "[cuda][argmax]") {
  MINFER_REQUIRE_GPU();
  const int n = 152064, n_rows = 64;
  const auto logits = random_logits(static_cast<size_t>(n) * n_rows, 5);
  const auto first = run(logits, n, n - 100);
  CHECK(n_wrong(first, logits, n, n - 100) == 0);
  for (int repeat = 0; repeat < 20; ++repeat) REQUIRE(same_bits(run(logits, n, n - 100), first));
  const std::vector<float> row(logits.begin() + 5 * static_cast<size_t>(n),
                               logits.begin() + 6 * static_cast<size_t>(n));
  const auto alone = run(row, n, n - 100);
  CHECK(std::memcmp(alone.data(), &first[5], sizeof(cu::Choice)) == 0);
}

TEST_CASE("argmax: refuses what it cannot answer", "[cuda][argmax]") {
  MINFER_REQUIRE_GPU();
  const cu::DeviceBuffer<float> logits(64);
  const cu::DeviceBuffer<cu::Choice> out(1);
  const cu::DeviceBuffer<uint8_t> scratch(cu::argmax_scratch_bytes(1));
  const cu::ArgmaxArgs good{.logits = logits.data(),
                            .out = out.data(),
                            .n_rows = 1,
                            .n_vocab = 64,
                            .n_vocab_used = 64,
                            .scratch = scratch.data()};
  const auto refused = [&good](auto change) {
    cu::ArgmaxArgs args = good;
    change(args);
    CHECK_THROWS_AS(cu::argmax(args, nullptr), Error);
  };
  refused([](auto& a) { a.n_vocab_used = 0; });
  refused([](auto& a) { a.n_vocab_used = 65; });
  refused([](auto& a) { a.n_rows = 0; });
  refused([](auto& a) { a.scratch = nullptr; });
  refused([](auto& a) { a.logits = nullptr; });
}

TEST_CASE("argmax: timing", "[.bench][cuda][argmax]") {
  MINFER_REQUIRE_GPU();
  const int n = 152064;
  for (const int n_rows : {1, 8, 64, 512}) {
    const int n_sets = std::max(2, 256 / n_rows);  // 156 MB or more
    const size_t set = static_cast<size_t>(n) * n_rows;
    const cu::DeviceBuffer<float> logits(set * n_sets);
    const auto values = random_logits(set, 1);
    for (int s = 0; s < n_sets; ++s) {
      cu::check(cudaMemcpy(logits.data() + s * set, values.data(), set * 4, cudaMemcpyHostToDevice),
                "upload");
    }
    const cu::DeviceBuffer<cu::Choice> out(n_rows);
    const cu::DeviceBuffer<uint8_t> scratch(cu::argmax_scratch_bytes(n_rows));
    const auto launch = [&](size_t at, cudaStream_t stream) {
      cu::argmax({.logits = logits.data() + at,
                  .out = out.data(),
                  .n_rows = n_rows,
                  .n_vocab = n,
                  .n_vocab_used = n,
                  .scratch = scratch.data()},
                 stream);
    };
    const double bytes = 4.0 * static_cast<double>(set);
    const std::string what = "argmax " + std::to_string(n_rows) + " x " + std::to_string(n);
    print_bandwidth(
        what, time_us(std::max(16, n_sets), [&](int i, cudaStream_t s) { launch(i % n_sets * set, s); }),
        bytes);
    if (n_rows == 1) {
      print_bandwidth(what + ", in L2", time_us(256, [&](int, cudaStream_t s) { launch(0, s); }), bytes);
    }
  }
}

}  // namespace minfer::test
