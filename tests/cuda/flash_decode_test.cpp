#include "cuda/kernels/flash_decode.h"

#include <string>

#include "core/error.h"
#include "cuda/kernels/flash_prefill.h"
#include "tests/cuda/flash_oracle.h"

using namespace minfer;
using test::FlashCache;
using test::FlashOut;
using test::FlashShape;
using test::random_q;

namespace {

struct Row {
  int pos = 0, first_slot = 0;
};

enum class Combine { kSecondLaunch, kLastBlock };

// One row a sequence.
struct Decode {
  Decode(const FlashCache& cache_, std::vector<half> q_, std::vector<Row> rows_)
      : cache(cache_), q(std::move(q_)), rows(std::move(rows_)), device_q(std::span<const half>(q)) {
    const FlashShape& s = cache.shape();
    std::vector<int32_t> pos, slots;
    for (const Row& row : rows) {
      pos.push_back(row.pos);
      slots.push_back(row.first_slot);
    }
    device_pos = cu::DeviceBuffer<int32_t>(std::span<const int32_t>(pos));
    device_slots = cu::DeviceBuffer<int32_t>(std::span<const int32_t>(slots));
    partials = cu::DeviceBuffer<float>(cu::flash_decode_partials(n(), s.n_head, s.head_dim));
    arrivals = cu::DeviceBuffer<uint32_t>(size_t{1} * n() * s.n_head);
    arrivals.fill_bytes(0);
  }
  int n() const { return static_cast<int>(rows.size()); }

  std::vector<half> run(Combine combine, int n_splits = 0) {
    const FlashShape& s = cache.shape();
    const FlashOut out(q.size());
    partials.fill_bytes(0xff);
    const cu::Stream stream;
    cu::flash_decode({.q = device_q.data(),
                      .kv = cache.arena(),
                      .rows = {device_pos.data(), device_slots.data()},
                      .out = out.data(),
                      .partials = partials.data(),
                      .arrivals = combine == Combine::kLastBlock ? arrivals.data() : nullptr,
                      .n_tokens = n(),
                      .n_head = s.n_head,
                      .n_head_kv = s.n_head_kv,
                      .head_dim = s.head_dim,
                      .scale = s.scale(),
                      .n_splits = n_splits},
                     stream.get());
    stream.synchronize("flash_decode");
    return out.values();
  }

  double worst(const std::vector<half>& out) const {
    const FlashShape& s = cache.shape();
    const std::vector<float> got = test::rounded(out), q_rows = test::rounded(q);
    double worst = 0;
    for (int t = 0; t < n(); ++t) {
      for (int h = 0; h < s.n_head; ++h) {
        const size_t at = (size_t{1} * t * s.n_head + h) * s.head_dim;
        const auto want =
            cache.attend(std::span(q_rows).subspan(at, s.head_dim), h, rows[t].first_slot, rows[t].pos);
        worst = std::max(worst, test::row_error(std::span(got).subspan(at, s.head_dim), want));
      }
    }
    return worst;
  }

  // Both ways to combine, whose bits agree; the error of them.
  double error() {
    const auto out = run(Combine::kSecondLaunch);
    CHECK(test::same_bits(run(Combine::kLastBlock), out));
    return worst(out);
  }

  const FlashCache& cache;
  std::vector<half> q;
  std::vector<Row> rows;
  cu::DeviceBuffer<half> device_q;
  cu::DeviceBuffer<int32_t> device_pos, device_slots;
  cu::DeviceBuffer<float> partials;
  cu::DeviceBuffer<uint32_t> arrivals;
};

// Rows of these lengths, each with a sequence of its own, NaN in the slots between them; the last ends the
// arena.
double error_of(const FlashShape& s, const std::vector<int>& lengths) {
  int n_slots = 0;
  for (const int n : lengths) n_slots += 3 + n;
  FlashCache cache(s, n_slots);
  std::vector<Row> rows;
  int slot = 0;
  for (const int n : lengths) {
    cache.fill_random(slot + 3, n, 17 + n);
    rows.push_back({n - 1, slot + 3});
    slot += 3 + n;
  }
  cache.upload();
  return Decode(cache, random_q(s, static_cast<int>(rows.size()), 5), rows).error();
}

}  // namespace

TEST_CASE("flash_decode: matches the f64 oracle at every head dim and length", "[cuda][flash_decode]") {
  MINFER_REQUIRE_GPU();
  for (const int head_dim : {64, 96, 128, 256}) {
    for (const std::vector<int>& lengths :
         {std::vector{1}, {2},    {15},   {16},           {17},
          {63},           {64},   {65},   {127},          {128},
          {129},          {255},  {256},  {257},          {512},
          {1000},         {4096}, {4097}, {8191, 1, 130}, {1, 16, 17, 127, 128, 129, 700, 3000}}) {
      INFO("head dim " << head_dim << ", first length " << lengths[0] << ", rows " << lengths.size());
      CHECK(error_of({7, 1, head_dim}, lengths) <= test::kFlashTolerance);
    }
  }
}

TEST_CASE("flash_decode: each head reads its own KV head", "[cuda][flash_decode]") {
  MINFER_REQUIRE_GPU();
  for (const FlashShape& s : {FlashShape{28, 4, 128},
                              {9, 3, 64},
                              {32, 8, 128},
                              {4, 4, 96},
                              {12, 1, 64},
                              {32, 2, 256},
                              {8, 1, 128},
                              {40, 8, 128},
                              {32, 32, 96}}) {
    INFO(s.n_head << ":" << s.n_head_kv << " heads of " << s.head_dim);
    CHECK(error_of(s, {700, 129, 1}) <= test::kFlashTolerance);
  }
}

TEST_CASE("flash_decode: a row has the same bits alone and beside others", "[cuda][flash_decode]") {
  MINFER_REQUIRE_GPU();
  const FlashShape s{28, 4, GENERATE(64, 128)};
  FlashCache cache(s, 9000);
  cache.fill_random(0, 9000, 1);
  cache.upload();
  const std::vector<Row> rows = {{4999, 0},  {0, 5000},   {511, 5001}, {1500, 6000},
                                 {99, 7700}, {127, 7800}, {128, 8000}, {700, 8200}};
  Decode all(cache, random_q(s, 8, 3), rows);
  const auto out = all.run(Combine::kLastBlock);
  const size_t width = size_t{1} * s.n_head * s.head_dim;
  for (size_t t = 0; t < rows.size(); ++t) {
    Decode alone(cache, {all.q.begin() + t * width, all.q.begin() + (t + 1) * width}, {rows[t]});
    CHECK(test::same_bits(alone.run(Combine::kLastBlock), std::span(out).subspan(t * width, width)));
  }
}

TEST_CASE("flash_decode: 64 rows, with the splits that they use alone", "[cuda][flash_decode]") {
  MINFER_REQUIRE_GPU();
  for (const FlashShape& s : {FlashShape{28, 4, 128}, FlashShape{9, 3, 64}}) {
    INFO(s.n_head << ":" << s.n_head_kv << " heads of " << s.head_dim);
    FlashCache cache(s, 1400);
    cache.fill_random(0, 1400, 1);
    cache.upload();
    std::vector<Row> rows;
    for (int t = 0; t < 64; ++t) rows.push_back({t * 211 % 1300, t});
    Decode decode(cache, random_q(s, 64, 3), rows);
    const auto out = decode.run(Combine::kLastBlock);
    CHECK(decode.worst(out) <= test::kFlashTolerance);
    int longest = 0;
    for (const Row& row : rows) longest = std::max(longest, row.pos + 1);
    const int n_splits = cu::flash_decode_splits(longest, s.n_head, s.n_head_kv);
    CHECK(test::same_bits(decode.run(Combine::kLastBlock, n_splits), out));
    CHECK(test::same_bits(decode.run(Combine::kSecondLaunch, n_splits), out));
    CHECK(test::same_bits(decode.run(Combine::kLastBlock, n_splits + 3), out));
    CHECK_THROWS_AS(decode.run(Combine::kLastBlock, 129), minfer::Error);
  }
}

TEST_CASE("flash_decode: a row's length and heads decide its splits", "[cuda][flash_decode]") {
  for (const auto& [n_keys, n_splits] : {std::pair{0, 1},
                                         {1, 1},
                                         {128, 1},
                                         {129, 2},
                                         {512, 4},
                                         {513, 5},
                                         {8192, 64},
                                         {8193, 57},
                                         {131072, 64}}) {
    CAPTURE(n_keys);
    CHECK(cu::flash_decode_splits(n_keys, 28, 4) == n_splits);
  }
  CHECK(cu::flash_decode_splits(131072, 32, 8) == 32);
  CHECK(cu::flash_decode_splits(131072, 7, 1) == 128);
}

TEST_CASE("flash_decode: a row without keys is 0", "[cuda][flash_decode]") {
  MINFER_REQUIRE_GPU();
  const FlashShape s{7, 1, GENERATE(64, 96, 128, 256)};
  FlashCache cache(s, 600);
  cache.fill_random(10, 500, 1);
  cache.upload();
  Decode decode(cache, random_q(s, 3, 2), {{-1, 0}, {499, 10}, {-7, 0}});
  for (const Combine combine : {Combine::kSecondLaunch, Combine::kLastBlock}) {
    const auto out = decode.run(combine);
    CHECK(decode.worst(out) <= test::kFlashTolerance);
    const auto is_zero = [](half x) { return test::to_float(x) == 0; };
    CHECK(std::all_of(out.begin(), out.begin() + 7 * s.head_dim, is_zero));
    CHECK(std::all_of(out.end() - 7 * s.head_dim, out.end(), is_zero));
  }
}

TEST_CASE("flash_decode: large and adversarial scores", "[cuda][flash_decode]") {
  MINFER_REQUIRE_GPU();
  const FlashShape s{7, 1, GENERATE(64, 96, 128, 256)};
  const int n = 1500;
  std::mt19937 rng(4);
  std::normal_distribution<float> normal;
  const auto error = [&](const FlashCache::Value& k, const std::vector<half>& q) {
    FlashCache cache(s, n);
    cache.fill(0, n, k, [&](int, int, int) { return normal(rng); });
    cache.upload();
    return Decode(cache, q, {{n - 1, 0}, {n - 2, 0}, {200, 0}}).error();
  };
  const std::vector<half> ones = test::to_half(std::vector<float>(size_t{3} * s.n_head * s.head_dim, 1.0f));
  const float per_dim =
      std::sqrt(static_cast<float>(s.head_dim)) / s.head_dim;  // k of a scaled score of 1 for q = 1

  SECTION("random, scaled scores near 1e4") {
    CHECK(error([&](int, int, int) { return 100 * normal(rng); }, random_q(s, 3, 1, 100)) <=
          test::kFlashTolerance);
  }
  SECTION("q.k of 1e7 and more") {
    CHECK(error([&](int, int, int) { return 1000 * normal(rng); }, random_q(s, 3, 1, 1000)) <=
          test::kFlashTolerance);
  }
  SECTION("q.k of 1e9, alike in every key but one: one-hot") {
    const auto q = test::to_half(std::vector<float>(ones.size(), 2048.0f));
    CHECK(error([](int, int j, int) { return j == 199 ? 4096.0f : 4000.0f; }, q) <= test::kFlashTolerance);
  }
  SECTION("all equal: the mean of v") {
    CHECK(error([](int, int, int) { return 3.0f; }, ones) <= test::kFlashTolerance);
  }
  SECTION("very negative") {
    CHECK(error([&](int, int j, int) { return -(1000 + j % 5) * per_dim; }, ones) <= test::kFlashTolerance);
  }
  SECTION("the last key above the rest") {
    CHECK(error([&](int, int j, int) { return (j >= n - 2 ? 20.0f : 0) * per_dim; }, ones) <=
          test::kFlashTolerance);
  }
  SECTION("strictly growing") {
    CHECK(error([&](int, int j, int) { return 0.25f * j * per_dim; }, ones) <= test::kFlashTolerance);
  }
  SECTION("strictly falling") {
    CHECK(error([&](int, int j, int) { return -0.25f * j * per_dim; }, ones) <= test::kFlashTolerance);
  }
}

TEST_CASE("flash_decode: what is not finite shows", "[cuda][flash_decode]") {
  MINFER_REQUIRE_GPU();
  const FlashShape s{2, 1, 128};
  FlashCache cache(s, 1000);
  cache.fill_random(0, 1000, 1);
  cache.upload();
  auto q = random_q(s, 1, 2);
  __half_raw inf;
  inf.x = 0x7c00;
  q[3] = inf;  // head 0
  const auto out = test::rounded(Decode(cache, q, {{999, 0}}).run(Combine::kLastBlock));
  CHECK(std::ranges::none_of(std::span(out).first(128), [](float x) { return std::isfinite(x); }));
  CHECK(std::ranges::all_of(std::span(out).last(128), [](float x) { return std::isfinite(x); }));
}

TEST_CASE("flash_decode: 32,768 and 131,071 keys", "[cuda][flash_decode]") {
  MINFER_REQUIRE_GPU();
  CHECK(error_of({3, 1, 64}, {32768}) <= test::kFlashTolerance);
  CHECK(error_of({7, 1, 128}, {131071}) <= test::kFlashTolerance);
}

TEST_CASE("flash_decode: agrees with flash_prefill", "[cuda][flash_decode]") {
  MINFER_REQUIRE_GPU();
  const FlashShape s{28, 4, GENERATE(64, 96, 128, 256)};
  FlashCache cache(s, 1100);
  cache.fill_random(50, 1000, 1);
  cache.upload();
  Decode decode(cache, random_q(s, 1, 3), {{999, 50}});
  const auto got = test::rounded(decode.run(Combine::kLastBlock));

  const std::vector<cu::FlashSegment> segments = {{0, 1, 999, 50}};
  const auto tiles = cu::flash_prefill_tiles(segments, s.head_dim);
  const cu::DeviceBuffer<cu::FlashTile> device_tiles{std::span<const cu::FlashTile>(tiles)};
  const FlashOut out(decode.q.size());
  const cu::Stream stream;
  cu::flash_prefill({.q = decode.device_q.data(),
                     .kv = cache.arena(),
                     .out = out.data(),
                     .tiles = device_tiles.data(),
                     .n_tiles = 1,
                     .n_head = s.n_head,
                     .n_head_kv = s.n_head_kv,
                     .head_dim = s.head_dim,
                     .scale = s.scale()},
                    stream.get());
  stream.synchronize("flash_prefill");
  const auto want = test::rounded(out.values());
  for (int h = 0; h < s.n_head; ++h) {
    const std::vector<double> row(want.begin() + h * s.head_dim, want.begin() + (h + 1) * s.head_dim);
    CHECK(test::row_error(std::span(got).subspan(size_t{1} * h * s.head_dim, s.head_dim), row) <=
          test::kFlashTolerance);
  }
}

TEST_CASE("flash_decode: the same bits at every run", "[cuda][flash_decode]") {
  MINFER_REQUIRE_GPU();
  const FlashShape s{28, 4, 128};
  FlashCache cache(s, 9000);
  cache.fill_random(0, 9000, 1);
  cache.upload();
  Decode decode(cache, random_q(s, 4, 3), {{8000, 0}, {511, 0}, {3000, 4000}, {40, 0}});
  const auto first = decode.run(Combine::kLastBlock);
  for (int run = 0; run < 20; ++run) CHECK(test::same_bits(decode.run(Combine::kLastBlock), first));
}

TEST_CASE("flash_decode: an unsupported head dim is named", "[cuda][flash_decode]") {
  MINFER_REQUIRE_GPU();
  FlashCache cache({1, 1, 64}, 8);
  cache.fill_random(0, 8, 1);
  cache.upload();
  Decode decode(cache, random_q({1, 1, 64}, 1, 1), {{3, 0}});
  try {
    cu::flash_decode({.q = decode.device_q.data(),
                      .kv = cache.arena(),
                      .rows = {decode.device_pos.data(), decode.device_slots.data()},
                      .out = decode.device_q.data(),
                      .partials = decode.partials.data(),
                      .n_tokens = 1,
                      .n_head = 1,
                      .n_head_kv = 1,
                      .head_dim = 80,
                      .scale = 1.0f},
                     nullptr);
    FAIL("no error");
  } catch (const std::exception& e) {
    CHECK(std::string(e.what()) == "flash_decode: head dim 80 is not supported: 64, 96, 128 and 256 are");
  }
}
