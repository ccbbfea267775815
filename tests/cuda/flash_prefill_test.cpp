#include "cuda/kernels/flash_prefill.h"

#include <string>

#include "tests/cuda/flash_oracle.h"

using namespace minfer;
using test::FlashCache;
using test::FlashOut;
using test::FlashShape;
using test::random_q;

namespace {

// q [n_rows, n_head, head_dim] and the attention of it, for segments of one batch.
struct Prefill {
  Prefill(const FlashCache& cache_, std::vector<half> q_, std::vector<cu::FlashSegment> segments_)
      : cache(cache_), q(std::move(q_)), segments(std::move(segments_)), device_q(std::span<const half>(q)) {}

  std::vector<half> run() const {
    const FlashShape& s = cache.shape();
    const auto tiles = cu::flash_prefill_tiles(segments, s.head_dim);
    const cu::DeviceBuffer<cu::FlashTile> device_tiles{std::span<const cu::FlashTile>(tiles)};
    const FlashOut out(q.size());
    const cu::Stream stream;
    cu::flash_prefill({.q = device_q.data(),
                       .kv = cache.arena(),
                       .out = out.data(),
                       .tiles = device_tiles.data(),
                       .n_tiles = static_cast<int>(tiles.size()),
                       .n_head = s.n_head,
                       .n_head_kv = s.n_head_kv,
                       .head_dim = s.head_dim,
                       .scale = s.scale()},
                      stream.get());
    stream.synchronize("flash_prefill");
    return out.values();
  }

  // The largest row error; rows of a segment are taken with this stride, and the last always.
  double worst(const std::vector<half>& out, int stride = 1) const {
    const FlashShape& s = cache.shape();
    const std::vector<float> got = test::rounded(out), rows = test::rounded(q);
    double worst = 0;
    for (const cu::FlashSegment& segment : segments) {
      for (int r = 0; r < segment.n_rows;
           r = r + 1 < segment.n_rows ? std::min(r + stride, segment.n_rows - 1) : r + 1) {
        for (int h = 0; h < s.n_head; ++h) {
          const size_t at = (size_t{1} * (segment.first_row + r) * s.n_head + h) * s.head_dim;
          const std::span<const float> row = std::span(rows).subspan(at, s.head_dim);
          const auto want = cache.attend(row, h, segment.first_slot, segment.first_pos + r);
          worst = std::max(worst, test::row_error(std::span(got).subspan(at, s.head_dim), want));
        }
      }
    }
    return worst;
  }

  const FlashCache& cache;
  std::vector<half> q;
  std::vector<cu::FlashSegment> segments;
  cu::DeviceBuffer<half> device_q;
};

// One sequence of n_past + n_rows positions, its last n_rows as the batch; slots before and behind it are
// NaN.
double error_of_one(const FlashShape& s, int n_past, int n_rows, int stride = 1) {
  FlashCache cache(s, n_past + n_rows + 10);
  cache.fill_random(10, n_past + n_rows, 7 + n_rows);  // ends with the arena: reading on would leave it
  cache.upload();
  const Prefill prefill(cache, random_q(s, n_rows, 3), {{0, n_rows, n_past, 10}});
  return prefill.worst(prefill.run(), stride);
}

}  // namespace

TEST_CASE("flash_prefill: matches the f64 oracle at every head dim and tile edge", "[cuda][flash_prefill]") {
  MINFER_REQUIRE_GPU();
  for (const int head_dim : {64, 96, 128, 256}) {
    for (const int n_rows : {1, 2, 15, 16, 17, 31, 33, 63, 64, 65, 127, 128, 129, 200}) {
      for (const int n_past : {0, 1, 30, 63, 64, 127, 500}) {
        INFO("head dim " << head_dim << ", " << n_rows << " rows after " << n_past);
        CHECK(error_of_one({2, 1, head_dim}, n_past, n_rows, 7) <= test::kFlashTolerance);
      }
    }
  }
}

TEST_CASE("flash_prefill: each head reads its own KV head", "[cuda][flash_prefill]") {
  MINFER_REQUIRE_GPU();
  for (const FlashShape& s :
       {FlashShape{28, 4, 128}, {9, 3, 64}, {7, 1, 64}, {4, 4, 96}, {16, 2, 256}, {32, 8, 128}}) {
    INFO(s.n_head << ":" << s.n_head_kv << " heads of " << s.head_dim);
    CHECK(error_of_one(s, 37, 150, 29) <= test::kFlashTolerance);
  }
}

TEST_CASE("flash_prefill: sequences of one batch do not see each other", "[cuda][flash_prefill]") {
  MINFER_REQUIRE_GPU();
  const FlashShape s{4, 2, GENERATE(64, 96, 128, 256)};
  FlashCache cache(s, 1200);
  cache.fill_random(5, 130, 1);  // rows 0 .. 129: a whole prompt
  cache.fill_random(135, 301,
                    2);  // row 130: one row at position 300; its neighbour's slots begin where it ends
  cache.fill_random(436, 90, 3);  // rows 131 .. 140: positions 80 .. 89
  cache.fill_random(700, 65, 4);  // rows 141 .. 205
  cache.upload();
  const std::vector<cu::FlashSegment> segments = {
      {0, 130, 0, 5}, {130, 1, 300, 135}, {131, 10, 80, 436}, {141, 65, 0, 700}};
  const Prefill prefill(cache, random_q(s, 206, 5), segments);
  const auto out = prefill.run();
  CHECK(prefill.worst(out) <= test::kFlashTolerance);

  // Each alone gives the same bits.
  for (const cu::FlashSegment& segment : segments) {
    const size_t width = size_t{1} * s.n_head * s.head_dim, begin = segment.first_row * width,
                 n = segment.n_rows * width;
    const Prefill alone(cache, {prefill.q.begin() + begin, prefill.q.begin() + begin + n},
                        {{0, segment.n_rows, segment.first_pos, segment.first_slot}});
    CHECK(test::same_bits(alone.run(), std::span(out).subspan(begin, n)));
  }
}

TEST_CASE("flash_prefill: chunks of a prompt give the bits of the whole", "[cuda][flash_prefill]") {
  MINFER_REQUIRE_GPU();
  const FlashShape s{4, 2, GENERATE(64, 96, 128, 256)};
  const int n = 333;
  FlashCache cache(s, n + 20);
  cache.fill_random(11, n, 9);
  cache.upload();
  const auto q = random_q(s, n, 10);
  const auto whole = Prefill(cache, q, {{0, n, 0, 11}}).run();
  const size_t width = size_t{1} * s.n_head * s.head_dim;
  for (const int chunk : {1, 7, 64, 100, 128, 256}) {
    std::vector<half> out;
    for (int first = 0; first < n; first += chunk) {
      const int rows = std::min(chunk, n - first);
      const Prefill part(cache, {q.begin() + first * width, q.begin() + (first + rows) * width},
                         {{0, rows, first, 11}});
      const auto part_out = part.run();
      out.insert(out.end(), part_out.begin(), part_out.end());
    }
    INFO("chunks of " << chunk);
    CHECK(test::same_bits(out, whole));
  }
}

TEST_CASE("flash_prefill: a row without keys is 0", "[cuda][flash_prefill]") {
  MINFER_REQUIRE_GPU();
  const FlashShape s{2, 1, GENERATE(64, 96, 128, 256)};
  FlashCache cache(s, 200);
  cache.fill_random(0, 100, 1);
  cache.upload();
  // Rows 0 .. 4 stand before position 0, row 5 sees one key; the second segment has none at all.
  const Prefill prefill(cache, random_q(s, 144, 2), {{0, 104, -5, 0}, {104, 40, -40, 0}});
  const auto out = prefill.run();
  CHECK(prefill.worst(out) <= test::kFlashTolerance);
  const size_t width = size_t{1} * s.n_head * s.head_dim;
  CHECK(std::all_of(out.begin(), out.begin() + 5 * width, [](half x) { return test::to_float(x) == 0; }));
  CHECK(std::all_of(out.begin() + 104 * width, out.end(), [](half x) { return test::to_float(x) == 0; }));
}

TEST_CASE("flash_prefill: large and adversarial scores", "[cuda][flash_prefill]") {
  MINFER_REQUIRE_GPU();
  const FlashShape s{2, 1, GENERATE(64, 96, 128, 256)};
  const int n = 260;
  std::mt19937 rng(4);
  std::normal_distribution<float> normal;
  const FlashCache::Value random_v = [&](int, int, int) { return normal(rng); };
  const auto error = [&](const FlashCache::Value& k, const std::vector<half>& q) {
    FlashCache cache(s, n);
    cache.fill(0, n, k, random_v);
    cache.upload();
    const Prefill prefill(cache, q, {{0, n, 0, 0}});
    return prefill.worst(prefill.run(), 3);
  };
  const std::vector<half> ones =
      test::to_half(std::vector<float>(size_t{1} * n * s.n_head * s.head_dim, 1.0f));
  const float per_dim =
      std::sqrt(static_cast<float>(s.head_dim)) / s.head_dim;  // k of a scaled score of 1 for q = 1

  SECTION("random, scaled scores near 1e4: one key nearly always has all the weight") {
    CHECK(error([&](int, int, int) { return 100 * normal(rng); }, random_q(s, n, 1, 100)) <=
          test::kFlashTolerance);
  }
  SECTION("q.k of 1e7 and more") {
    CHECK(error([&](int, int, int) { return 1000 * normal(rng); }, random_q(s, n, 1, 1000)) <=
          test::kFlashTolerance);
  }
  SECTION("q.k of 1e9, alike in every key but one: one-hot") {
    const auto k = [](int, int j, int) { return j == 100 ? 4096.0f : 4000.0f; };
    const auto q = test::to_half(std::vector<float>(size_t{1} * n * s.n_head * s.head_dim, 2048.0f));
    CHECK(error(k, q) <= test::kFlashTolerance);
  }
  SECTION("all equal: the mean of v") {
    CHECK(error([](int, int, int) { return 3.0f; }, ones) <= test::kFlashTolerance);
  }
  SECTION("all zero") {
    CHECK(error([](int, int, int) { return 0.0f; }, ones) <= test::kFlashTolerance);
  }
  SECTION("very negative") {
    CHECK(error([&](int, int j, int) { return -(1000 + j % 5) * per_dim; }, ones) <= test::kFlashTolerance);
  }
  SECTION("the last key of a step above the rest") {
    CHECK(error([&](int, int j, int) { return (j % 64 == 63 ? 30 + j / 64 : 0) * per_dim; }, ones) <=
          test::kFlashTolerance);
  }
  SECTION("strictly growing: the largest changes at every step") {
    CHECK(error([&](int, int j, int) { return 0.5f * j * per_dim; }, ones) <= test::kFlashTolerance);
  }
  SECTION("strictly falling") {
    CHECK(error([&](int, int j, int) { return -0.5f * j * per_dim; }, ones) <= test::kFlashTolerance);
  }
}

TEST_CASE("flash_prefill: what is not finite shows in its rows", "[cuda][flash_prefill]") {
  MINFER_REQUIRE_GPU();
  const FlashShape s{1, 1, GENERATE(64, 96, 128, 256)};
  FlashCache cache(s, 100);
  cache.fill_random(0, 100, 1);
  cache.upload();
  auto q = random_q(s, 100, 2);
  __half_raw inf;
  inf.x = 0x7c00;
  q[size_t{50} * s.head_dim + 3] = inf;
  const auto out = test::rounded(Prefill(cache, q, {{0, 100, 0, 0}}).run());
  for (int r = 0; r < 100; ++r) {
    const std::span<const float> row = std::span(out).subspan(size_t{1} * r * s.head_dim, s.head_dim);
    CHECK(std::ranges::all_of(row, [](float x) { return std::isfinite(x); }) == (r != 50));
  }
}

TEST_CASE("flash_prefill: 32,768 and 131,071 keys", "[cuda][flash_prefill]") {
  MINFER_REQUIRE_GPU();
  CHECK(error_of_one({2, 1, 64}, 32768 - 130, 130, 43) <= test::kFlashTolerance);
  CHECK(error_of_one({7, 1, 128}, 131071 - 130, 130, 128) <= test::kFlashTolerance);
}

TEST_CASE("flash_prefill: the same bits at every run", "[cuda][flash_prefill]") {
  MINFER_REQUIRE_GPU();
  const FlashShape s{28, 4, 128};
  FlashCache cache(s, 700);
  cache.fill_random(3, 600, 1);
  cache.upload();
  const Prefill prefill(cache, random_q(s, 600, 2), {{0, 600, 0, 3}});
  const auto first = prefill.run();
  for (int run = 0; run < 20; ++run) CHECK(test::same_bits(prefill.run(), first));
}

TEST_CASE("flash_prefill: the host's tiles cover every row once, longest first", "[flash_prefill]") {
  const std::vector<cu::FlashSegment> segments = {
      {0, 300, 0, 7}, {300, 0, 5, 400}, {300, 1, 900, 500}, {301, 129, 40, 2000}};
  const int tile_rows = cu::flash_prefill_tile_rows(128);
  std::vector<int> seen(430);
  int last = INT32_MAX;
  for (const cu::FlashTile& t : cu::flash_prefill_tiles(segments, 128)) {
    const int rows = std::min(tile_rows, t.segment_n_rows - t.row), n_keys = t.first_pos + t.row + rows;
    for (int r = 0; r < rows; ++r) ++seen[t.segment_first_row + t.row + r];
    CHECK(n_keys <= last);
    last = n_keys;
  }
  CHECK(std::ranges::count(seen, 1) == 430);
}

TEST_CASE("flash_prefill: an unsupported head dim is named", "[flash_prefill]") {
  try {
    cu::flash_prefill_tile_rows(80);
    FAIL("no error");
  } catch (const std::exception& e) {
    CHECK(std::string(e.what()) == "flash_prefill: head dim 80 is not supported: 64, 96, 128 and 256 are");
  }
}

TEST_CASE("flash_prefill: time", "[.bench]") {
  MINFER_REQUIRE_GPU();
  struct Job {
    FlashShape shape;
    int n_past, n_rows, n_sequences;
  };
  for (const Job& job :
       {Job{{28, 4, 128}, 0, 512, 1}, Job{{28, 4, 128}, 0, 2048, 1}, Job{{28, 4, 128}, 0, 8192, 1},
        Job{{28, 4, 128}, 30720, 2048, 1}, Job{{28, 4, 128}, 0, 256, 8}, Job{{14, 2, 64}, 0, 2048, 1},
        Job{{32, 32, 96}, 0, 2048, 1}, Job{{16, 4, 256}, 0, 2048, 1}}) {
    const FlashShape& s = job.shape;
    const int n_tokens = job.n_rows * job.n_sequences, n_keys = job.n_past + job.n_rows;
    const int n_slots = n_keys * job.n_sequences, n_sets = n_tokens >= 8192 || n_slots > 8192 ? 2 : 6;
    std::vector<cu::FlashSegment> segments;
    for (int i = 0; i < job.n_sequences; ++i)
      segments.push_back({i * job.n_rows, job.n_rows, job.n_past, i * n_keys});
    const auto tiles = cu::flash_prefill_tiles(segments, s.head_dim);
    const cu::DeviceBuffer<cu::FlashTile> device_tiles{std::span<const cu::FlashTile>(tiles)};
    std::vector<cu::DeviceBuffer<half>> q, k, v, out;
    const auto kv = test::repeated_normal(size_t{1} * s.n_head_kv * n_slots * s.head_dim, 1);
    const auto host_q = test::repeated_normal(size_t{1} * n_tokens * s.n_head * s.head_dim, 2);
    for (int i = 0; i < n_sets; ++i) {
      q.emplace_back(std::span<const half>(host_q));
      out.emplace_back(host_q.size());
      k.emplace_back(std::span<const half>(kv));
      v.emplace_back(std::span<const half>(kv));
    }
    const auto time = test::time_graph(n_sets, 25, [&](int i, cudaStream_t stream) {
      cu::flash_prefill({.q = q[i].data(),
                         .kv = {k[i].data(), v[i].data(), n_slots},
                         .out = out[i].data(),
                         .tiles = device_tiles.data(),
                         .n_tiles = static_cast<int>(tiles.size()),
                         .n_head = s.n_head,
                         .n_head_kv = s.n_head_kv,
                         .head_dim = s.head_dim,
                         .scale = s.scale()},
                        stream);
    });
    const double pairs =
        job.n_sequences * (double(job.n_rows) * job.n_past + 0.5 * job.n_rows * (job.n_rows + 1.0));
    const double tflops = 4e-6 * pairs * s.n_head * s.head_dim / time.median;
    std::printf(
        "flash_prefill %2d:%-2d x %3d  %5d rows x %d after %5d: %8.1f us (%.1f - %.1f)  %5.0f TFLOP/s  %2.0f "
        "%% of 790\n",
        s.n_head, s.n_head_kv, s.head_dim, job.n_rows, job.n_sequences, job.n_past, time.median, time.min,
        time.max, tflops, tflops / 7.9);
  }
}
