#include "cuda/kernels/rope_store.h"

#include <string>

#include "core/error.h"
#include "tests/cuda/gpu.h"
#include "tests/cuda/guarded.h"
#include "tests/cuda/timing.h"

namespace minfer::test {
namespace {

struct Shape {
  int n_tokens, n_head, n_head_kv, head_dim, n_rot;
  bool norms;
  int n_heads() const { return n_head + 2 * n_head_kv; }
  size_t row() const { return static_cast<size_t>(n_heads()) * head_dim; }
};

// The operands of a call and what it wrote.
struct Case {
  Shape shape;
  std::vector<float> qkv, q_norm, k_norm;  // norms empty: none
  std::vector<double> freq;
  std::vector<int32_t> pos, first_slot;
  float magnitude = 1.0f, eps = 1e-6f;
  int n_slots = 0;

  std::vector<half> q, k, v;

  int slot(int t) const { return first_slot[t] + pos[t]; }
};

// Positions up to 131,071, each with a slot of its own in a small arena: first_slot may well be negative.
Case make_case(const Shape& s, uint32_t seed) {
  Case c;
  c.shape = s;
  c.qkv = random_normal(s.n_tokens * s.row(), seed, 2.0f);
  if (s.norms) {
    c.q_norm = random_normal(s.head_dim, seed + 1);
    c.k_norm = random_normal(s.head_dim, seed + 2);
  }
  for (int i = 0; i < s.n_rot / 2; ++i)
    c.freq.push_back(0.98765432198765 * std::pow(1e6, -2.0 * i / s.n_rot));
  c.n_slots = s.n_tokens + 3;
  for (int t = 0; t < s.n_tokens; ++t) {
    c.pos.push_back(t == 0 ? 0 : t == 1 ? 131071 : t * 7919 % 131072);
    const int slot = c.n_slots - 2 - t;  // slots 0, 1 and the last are nobody's
    c.first_slot.push_back(slot - c.pos.back());
  }
  return c;
}

void run(Case& c) {
  const Shape& s = c.shape;
  const cu::DeviceBuffer<float> qkv(c.qkv), q_norm(c.q_norm), k_norm(c.k_norm);
  const cu::DeviceBuffer<double> freq(c.freq);
  const cu::DeviceBuffer<int32_t> pos(c.pos), first_slot(c.first_slot);
  const Guarded<half> q(static_cast<size_t>(s.n_tokens) * s.n_head * s.head_dim);
  const Guarded<half> k(static_cast<size_t>(s.n_head_kv) * c.n_slots * s.head_dim);
  const Guarded<half> v(static_cast<size_t>(s.n_head_kv) * c.n_slots * s.head_dim);
  const cu::Stream stream;
  cu::rope_store({.qkv = qkv.data(),
                  .q_norm = q_norm.data(),
                  .k_norm = k_norm.data(),
                  .freq = freq.data(),
                  .magnitude = c.magnitude,
                  .rows = {pos.data(), first_slot.data()},
                  .q = q.data(),
                  .kv = {k.data(), v.data(), c.n_slots},
                  .n_tokens = s.n_tokens,
                  .n_head = s.n_head,
                  .n_head_kv = s.n_head_kv,
                  .head_dim = s.head_dim,
                  .n_rot = s.n_rot,
                  .eps = c.eps},
                 stream.get());
  stream.synchronize("rope_store test");
  c.q = q.read();
  c.k = k.read();
  c.v = v.read();
}

struct Wanted {
  double value;
  double tolerance;
};

// Head h of token t in f64.
std::vector<Wanted> oracle(const Case& c, int t, int h) {
  const Shape& s = c.shape;
  const bool is_q = h < s.n_head, is_v = h >= s.n_head + s.n_head_kv;
  const float* x = c.qkv.data() + t * s.row() + static_cast<size_t>(h) * s.head_dim;
  std::vector<double> value(x, x + s.head_dim);
  const auto& norm = is_q ? c.q_norm : c.k_norm;
  if (!is_v && !norm.empty()) {
    double sum = 0;
    for (const double v : value) sum += v * v;
    const double scale = 1 / std::sqrt(sum / s.head_dim + double{c.eps});
    for (int d = 0; d < s.head_dim; ++d) value[d] *= scale * norm[d];
  }
  std::vector<Wanted> out;
  for (int d = 0; d < s.head_dim; d += 2) {
    double a = value[d], b = value[d + 1];
    const double length = std::hypot(a, b);
    if (!is_v && d < s.n_rot) {
      const double angle = c.pos[t] * c.freq[d / 2];
      const double cosine = c.magnitude * std::cos(angle), sine = c.magnitude * std::sin(angle);
      const double turned = a * cosine - b * sine;
      b = a * sine + b * cosine;
      a = turned;
    }
    // f16 rounding; the angle, 1e-7 after its reduction, cos and sin, three roundings and the norm's 1.2e-6,
    // all of which go with the length of the pair.
    const double f32 = 2e-6 * length * c.magnitude;
    for (const double v : {a, b}) out.push_back({v, f32 + 0x1p-11 * std::abs(v) + 0x1p-25});
  }
  return out;
}

// Values off the oracle, and values of the cache outside the rows' slots that were written to.
int n_wrong(const Case& c) {
  const Shape& s = c.shape;
  int wrong = 0;
  std::vector<bool> mine(c.n_slots, false);
  for (int t = 0; t < s.n_tokens; ++t) {
    mine[c.slot(t)] = true;
    for (int h = 0; h < s.n_heads(); ++h) {
      const int h_kv = (h - s.n_head) % s.n_head_kv;
      const half* got = h < s.n_head ? c.q.data() + (static_cast<size_t>(t) * s.n_head + h) * s.head_dim
                                     : (h < s.n_head + s.n_head_kv ? c.k : c.v).data() +
                                           (static_cast<size_t>(h_kv) * c.n_slots + c.slot(t)) * s.head_dim;
      const auto want = oracle(c, t, h);
      for (int d = 0; d < s.head_dim; ++d)
        wrong += !(std::abs(to_float(got[d]) - want[d].value) <= want[d].tolerance);
    }
  }
  for (int h = 0; h < s.n_head_kv; ++h) {
    for (int slot = 0; slot < c.n_slots; ++slot) {
      if (mine[slot]) continue;
      const size_t at = (static_cast<size_t>(h) * c.n_slots + slot) * s.head_dim;
      wrong += !Guarded<half>::untouched(std::span<const half>(c.k).subspan(at, s.head_dim));
      wrong += !Guarded<half>::untouched(std::span<const half>(c.v).subspan(at, s.head_dim));
    }
  }
  return wrong;
}

}  // namespace

TEST_CASE("rope_store: matches the f64 oracle", "[cuda][rope_store]") {
  MINFER_REQUIRE_GPU();
  const std::vector<Shape> shapes = {
      {1, 28, 4, 128, 128, false}, {5, 28, 4, 128, 128, false},  // Qwen2.5 7B
      {4, 14, 2, 64, 64, false},   {3, 9, 3, 64, 64, false},     // Qwen2.5 0.5B, SmolLM2
      {3, 32, 8, 128, 128, true},                                // Qwen3
      {2, 32, 32, 96, 96, false},  {2, 8, 4, 256, 256, false},
      {2, 8, 1, 256, 256, true},   {2, 64, 64, 128, 128, true},  // more heads than one block takes at once
      {3, 71, 1, 64, 64, false},   {3, 5, 1, 64, 64, true},      // an odd head shares a warp
      {3, 4, 2, 80, 32, false},    {3, 4, 2, 80, 20, true},
      {2, 3, 3, 96, 50, true},  // the rest passes through
      {2, 3, 1, 2, 2, false},      {3, 3, 3, 50, 50, true},
      {2, 5, 1, 254, 20, true},    {2, 2, 1, 6, 0, false},
      {3, 2, 1, 4, 4, false},      {2, 3, 2, 132, 132, true},
  };
  uint32_t seed = 1;
  for (const Shape& s : shapes) {
    INFO(s.n_tokens << " tokens, heads " << s.n_head << ':' << s.n_head_kv << ", head_dim " << s.head_dim
                    << ", n_rot " << s.n_rot << (s.norms ? ", norms" : ""));
    Case c = make_case(s, seed += 10);
    run(c);
    CHECK(n_wrong(c) == 0);
    c.magnitude = 1.1386294f;
    if (s.norms) c.k_norm.clear();  // one norm without the other
    run(c);
    CHECK(n_wrong(c) == 0);
  }
}

TEST_CASE("rope_store: a token's bits depend on nothing else, at every run", "[cuda][rope_store]") {
  MINFER_REQUIRE_GPU();
  for (const Shape& s : {Shape{7, 28, 4, 128, 128, false}, Shape{7, 9, 3, 64, 64, true}}) {
    Case c = make_case(s, 5);
    run(c);
    const Case first = c;
    for (int repeat = 0; repeat < 20; ++repeat) {
      run(c);
      REQUIRE(same_bits(c.q, first.q));
      REQUIRE(same_bits(c.k, first.k));
      REQUIRE(same_bits(c.v, first.v));
    }
    for (const int t : {0, 3, 6}) {
      Case alone = c;
      alone.shape.n_tokens = 1;
      alone.qkv.assign(c.qkv.begin() + t * s.row(), c.qkv.begin() + (t + 1) * s.row());
      alone.pos = {c.pos[t]};
      alone.first_slot = {c.first_slot[t]};
      run(alone);
      const size_t q_row = static_cast<size_t>(s.n_head) * s.head_dim;
      CHECK(same_bits(std::span<const half>(alone.q), std::span<const half>(c.q).subspan(t * q_row, q_row)));
      for (int h = 0; h < s.n_head_kv; ++h) {
        const size_t at = (static_cast<size_t>(h) * c.n_slots + c.slot(t)) * s.head_dim;
        CHECK(same_bits(std::span<const half>(alone.k).subspan(at, s.head_dim),
                        std::span<const half>(c.k).subspan(at, s.head_dim)));
      }
    }
  }
}

TEST_CASE("rope_store: dims behind n_rot, and v, pass through to the bit", "[cuda][rope_store]") {
  MINFER_REQUIRE_GPU();
  const Shape s{3, 4, 2, 80, 34, false};  // the vector of dims 32 .. 35 is half rotated
  Case c = make_case(s, 9);
  c.magnitude = 1.25f;
  run(c);
  for (int t = 0; t < s.n_tokens; ++t) {
    for (int h = 0; h < s.n_head; ++h) {
      const auto want = to_half(std::span<const float>(c.qkv).subspan(t * s.row() + h * s.head_dim + s.n_rot,
                                                                      s.head_dim - s.n_rot));
      CHECK(same_bits(
          std::span<const half>(c.q).subspan((t * s.n_head + h) * s.head_dim + s.n_rot, want.size()),
          std::span<const half>(want)));
    }
    for (int h = 0; h < s.n_head_kv; ++h) {
      const size_t from = t * s.row() + (s.n_head + s.n_head_kv + h) * s.head_dim;
      const auto want = to_half(std::span<const float>(c.qkv).subspan(from, s.head_dim));
      CHECK(
          same_bits(std::span<const half>(c.v).subspan((h * c.n_slots + c.slot(t)) * s.head_dim, want.size()),
                    std::span<const half>(want)));
    }
  }
}

TEST_CASE("rope_store: what is not finite, or leaves f16, is seen behind it", "[cuda][rope_store]") {
  MINFER_REQUIRE_GPU();
  const Shape s{1, 2, 1, 64, 64, false};
  Case c = make_case(s, 13);  // position 0: nothing turns
  c.qkv[3] = NAN;
  c.qkv[64 + 5] = -1e5f;
  c.qkv[2 * 64 + 10] = 1e5f;   // k
  c.qkv[3 * 64 + 20] = -1e5f;  // v
  c.qkv[3 * 64 + 21] = INFINITY;
  run(c);
  const size_t row = c.slot(0) * 64;
  CHECK(std::isnan(to_float(c.q[3])));
  CHECK(to_float(c.q[64 + 5]) == -INFINITY);
  CHECK(to_float(c.k[row + 10]) == INFINITY);
  CHECK(to_float(c.v[row + 20]) == -INFINITY);
  CHECK(to_float(c.v[row + 21]) == INFINITY);

  // A norm over squares that leave f32, or over a NaN, gives NaN in all of the head and nowhere else.
  Case n = make_case({1, 2, 1, 64, 64, true}, 14);
  n.qkv[7] = 1e30f;
  n.qkv[2 * 64 + 1] = NAN;
  run(n);
  for (int d = 0; d < 64; ++d) {
    REQUIRE(std::isnan(to_float(n.q[d])));
    REQUIRE(std::isfinite(to_float(n.q[64 + d])));
    REQUIRE(std::isnan(to_float(n.k[row + d])));
  }
}

TEST_CASE("rope_store: a slot outside the arena is not written, and the row's q is NaN",
          "[cuda][rope_store]") {
  MINFER_REQUIRE_GPU();
  const Shape s{3, 4, 2, 64, 64, false};
  Case c = make_case(s, 15);
  for (const int outside : {c.n_slots, -1}) {
    c.first_slot[1] = outside - c.pos[1];
    run(c);
    const int row = s.n_head * s.head_dim;
    for (int i = 0; i < row; ++i) {
      REQUIRE(std::isfinite(to_float(c.q[i])));
      REQUIRE(std::isnan(to_float(c.q[row + i])));
    }
    int n_written = 0;
    for (const half v : c.k) n_written += !std::isnan(to_float(v));
    CHECK(n_written == 2 * s.n_head_kv * s.head_dim);
  }
}

TEST_CASE("rope_store: refuses shapes that it has no kernel for", "[cuda][rope_store]") {
  MINFER_REQUIRE_GPU();
  const cu::DeviceBuffer<float> qkv(4096);
  const cu::DeviceBuffer<double> freq(128);
  const cu::DeviceBuffer<int32_t> rows(1);
  const cu::DeviceBuffer<half> q(1024), k(1024), v(1024);
  const cu::RopeStoreArgs good{.qkv = qkv.data(),
                               .freq = freq.data(),
                               .rows = {rows.data(), rows.data()},
                               .q = q.data(),
                               .kv = {k.data(), v.data(), 1},
                               .n_tokens = 1,
                               .n_head = 1,
                               .n_head_kv = 1,
                               .head_dim = 64,
                               .n_rot = 64};
  const auto refused = [&good](auto change) {
    cu::RopeStoreArgs args = good;
    change(args);
    CHECK_THROWS_AS(cu::rope_store(args, nullptr), Error);
  };
  refused([](auto& a) { a.n_rot = 63; });
  refused([](auto& a) { a.n_rot = 66; });
  refused([](auto& a) { a.n_rot = -2; });
  refused([](auto& a) { a.head_dim = 258; });
  refused([](auto& a) { a.head_dim = 65; });
  refused([](auto& a) { a.n_head_kv = 0; });
  refused([](auto& a) { a.n_tokens = 0; });
  refused([](auto& a) { a.qkv += 1; });
  refused([](auto& a) { a.q += 2; });
  refused([](auto& a) { a.freq = nullptr; });
  refused([](auto& a) { a.kv.n_slots = 0; });
}

TEST_CASE("rope_store: timing", "[.bench][cuda][rope_store]") {
  MINFER_REQUIRE_GPU();
  struct Line {
    const char* what;
    Shape shape;
  };
  for (const auto& [what, s] : {Line{"28:4 x 128", {1, 28, 4, 128, 128, false}},
                                {"28:4 x 128", {8, 28, 4, 128, 128, false}},
                                {"28:4 x 128", {64, 28, 4, 128, 128, false}},
                                {"28:4 x 128", {512, 28, 4, 128, 128, false}},
                                {"28:4 x 128", {2048, 28, 4, 128, 128, false}},
                                {"14:2 x 64", {2048, 14, 2, 64, 64, false}},
                                {"32:8 x 128 norms", {1, 32, 8, 128, 128, true}},
                                {"32:8 x 128 norms", {2048, 32, 8, 128, 128, true}}}) {
    Case c = make_case(s, 1);
    for (int t = 0; t < s.n_tokens; ++t) c.pos[t] = 1000 + t, c.first_slot[t] = -1000;
    const int n_sets = s.n_tokens >= 512 ? 4 : 64;
    const size_t set = s.n_tokens * s.row();
    const size_t q_set = static_cast<size_t>(s.n_tokens) * s.n_head * s.head_dim;
    const size_t kv_set = static_cast<size_t>(s.n_head_kv) * c.n_slots * s.head_dim;
    cu::DeviceBuffer<float> qkv(set * n_sets), q_norm(c.q_norm), k_norm(c.k_norm);
    for (int i = 0; i < n_sets; ++i) {
      cu::check(cudaMemcpy(qkv.data() + i * set, c.qkv.data(), set * 4, cudaMemcpyHostToDevice), "upload");
    }
    const cu::DeviceBuffer<double> freq(c.freq);
    const cu::DeviceBuffer<int32_t> pos(c.pos), first_slot(c.first_slot);
    const cu::DeviceBuffer<half> q(q_set * n_sets), k(kv_set * n_sets), v(kv_set * n_sets);
    const Timing t = time_us(std::max(64, 4 * n_sets), [&, shape = s](int i, cudaStream_t stream) {
      const size_t at = i % n_sets;
      cu::rope_store({.qkv = qkv.data() + at * set,
                      .q_norm = q_norm.data(),
                      .k_norm = k_norm.data(),
                      .freq = freq.data(),
                      .rows = {pos.data(), first_slot.data()},
                      .q = q.data() + at * q_set,
                      .kv = {k.data() + at * kv_set, v.data() + at * kv_set, c.n_slots},
                      .n_tokens = shape.n_tokens,
                      .n_head = shape.n_head,
                      .n_head_kv = shape.n_head_kv,
                      .head_dim = shape.head_dim,
                      .n_rot = shape.n_rot,
                      .eps = c.eps},
                     stream);
    });
    print_bandwidth("rope_store " + std::to_string(s.n_tokens) + " x " + what, t,
                    6.0 * static_cast<double>(set));
  }
}

}  // namespace minfer::test
