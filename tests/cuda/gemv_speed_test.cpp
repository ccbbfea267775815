// How fast gemv is on the shapes of Qwen2.5-7B in q4_k_m: `test_cuda "[.bench]"`. Every call reads other
// weights than the calls before it, so that nothing comes from L2.
#include <cstdio>

#include "cuda/kernels/gemv.h"
#include "tests/cuda/blocks.h"
#include "tests/cuda/timing.h"

namespace minfer::test {
namespace {

using cu::GemvArgs;
using cu::GemvEpilogue;
using enum TensorType;

constexpr size_t kPoolBytes = size_t{768} << 20;  // of each type; L2 is 50 MB

// Packed rows of one type, many times over; any multiple of a tile may be where a matrix starts.
class Pool {
 public:
  explicit Pool(TensorType type) : type_(type), bytes_(kPoolBytes) {
    const TestMatrix some(type, 4096, 4096, 61);
    for (size_t at = 0; at < kPoolBytes; at += some.packed.size()) {
      const size_t n = std::min(some.packed.size(), kPoolBytes - at);
      cu::check(cudaMemcpy(bytes_.data() + at, some.packed.data(), n, cudaMemcpyDeviceToDevice), "pool");
    }
  }
  cu::PackedMatrix take(int n_rows, int n_cols) {
    const size_t n = cu::packed_bytes(type_, n_rows, n_cols);
    if (at_ + n > kPoolBytes) at_ = 0;
    const cu::PackedMatrix m{bytes_.data() + at_, type_, n_rows, n_cols};
    at_ += n;
    taken += static_cast<double>(n);
    return m;
  }
  double taken = 0;

 private:
  TensorType type_;
  cu::DeviceBuffer<std::byte> bytes_;
  size_t at_ = 0;
};

struct Decode {
  Pool q4{kQ4_K}, q6{kQ6_K};
  cu::DeviceBuffer<half> x{8 * 18944}, act{8 * 18944};
  cu::DeviceBuffer<float> out{size_t{8} * 152064};
  int n_tokens = 1;
  bool early = false;

  Decode() {
    x.upload(to_half(random_normal(x.size(), 62)));
    out.fill_bytes(0);
  }
  GemvArgs args(GemvEpilogue epilogue) {
    GemvArgs a;
    a.x = x.data(), a.n_tokens = n_tokens, a.epilogue = epilogue, a.out_f32 = out.data(),
    a.out_f16 = act.data(), a.early = early;
    return a;
  }
  Pool& of(bool is_q6) { return is_q6 ? q6 : q4; }

  void qkv(bool v_is_q6, cudaStream_t stream) {
    GemvArgs a = args(GemvEpilogue::kStore);
    a.n_matrices = 3;
    a.w[0] = q4.take(3584, 3584), a.w[1] = q4.take(512, 3584), a.w[2] = of(v_is_q6).take(512, 3584);
    cu::gemv(a, stream);
  }
  void one(bool is_q6, int n_rows, int n_cols, GemvEpilogue epilogue, cudaStream_t stream) {
    GemvArgs a = args(epilogue);
    a.w[0] = of(is_q6).take(n_rows, n_cols);
    cu::gemv(a, stream);
  }
  void gate_up(cudaStream_t stream) {
    GemvArgs a = args(GemvEpilogue::kSwiglu);
    a.n_matrices = 2, a.w[0] = q4.take(18944, 3584), a.w[1] = q4.take(18944, 3584), a.scale = 0x1p-6f;
    cu::gemv(a, stream);
  }
  void token(cudaStream_t stream) {
    for (int l = 0; l < 28; ++l) {
      const bool more_bits = l < 3 || l >= 24 || (l - 3) % 3 == 2;  // q4_k_m: half of v and down
      qkv(more_bits, stream);
      one(false, 3584, 3584, GemvEpilogue::kResidual, stream);
      gate_up(stream);
      one(more_bits, 3584, 18944, GemvEpilogue::kResidual, stream);
    }
    one(true, 152064, 3584, GemvEpilogue::kStore, stream);
  }

  template <class Launch>
  void row(const char* what, int n_calls, Launch launch) {
    const double before = q4.taken + q6.taken;
    const Timing t = time_us(n_calls, [&](int, cudaStream_t s) { launch(s); });
    char name[80];
    std::snprintf(name, sizeof name, "%s, %d row%s%s", what, n_tokens, n_tokens == 1 ? "" : "s",
                  early ? ", early" : "");
    print_bandwidth(name, t, (q4.taken + q6.taken - before) / n_calls);
  }
};

TEST_CASE("gemv: speed of a decode step's matrices", "[.bench][cuda][gemv]") {
  MINFER_REQUIRE_GPU();
  Decode d;
  for (const int n_tokens : {1, 2, 4, 8}) {
    d.n_tokens = n_tokens;
    d.row("qkv q4_K", 56, [&](cudaStream_t s) { d.qkv(false, s); });
    d.row("qkv q4_K q4_K q6_K", 56, [&](cudaStream_t s) { d.qkv(true, s); });
    d.row("o q4_K", 84, [&](cudaStream_t s) { d.one(false, 3584, 3584, GemvEpilogue::kResidual, s); });
    d.row("gate_up q4_K", 20, [&](cudaStream_t s) { d.gate_up(s); });
    d.row("down q4_K", 28, [&](cudaStream_t s) { d.one(false, 3584, 18944, GemvEpilogue::kResidual, s); });
    d.row("down q6_K", 28, [&](cudaStream_t s) { d.one(true, 3584, 18944, GemvEpilogue::kResidual, s); });
    d.row("head q6_K", 4, [&](cudaStream_t s) { d.one(true, 152064, 3584, GemvEpilogue::kStore, s); });
    d.row("all of a 7B decode step", 1, [&](cudaStream_t s) { d.token(s); });
  }
}

TEST_CASE("gemv: speed of a decode step alone", "[.bench_step][cuda][gemv]") {
  MINFER_REQUIRE_GPU();
  Decode d;
  for (const int n_tokens : {1, 8}) {
    for (const bool early : {false, true}) {
      d.n_tokens = n_tokens, d.early = early;
      d.row("all of a 7B decode step", 1, [&](cudaStream_t s) { d.token(s); });
    }
  }
}

TEST_CASE("gemv: speed of small models' types", "[.bench][cuda][gemv]") {
  MINFER_REQUIRE_GPU();
  for (const TensorType type : {kQ4_0, kQ4_1, kQ5_0, kQ8_0, kQ5_K, kF16}) {
    Pool pool(type);
    cu::DeviceBuffer<half> x{8 * 8192};
    x.upload(to_half(random_normal(x.size(), 63)));
    cu::DeviceBuffer<float> out{size_t{8} * 151936};
    for (const int n_tokens : {1, 2, 8}) {
      for (const auto& [n_rows, n_cols] :
           {std::pair{2048, 2048}, {8192, 2048}, {49152, 2048}, {151936, 896}}) {
        if (n_tokens == 2 && n_rows < 49152) continue;
        if (type == kQ5_K && n_cols % 256 != 0) continue;
        const double before = pool.taken;
        const int n_calls = 20;
        const Timing t = time_us(n_calls, [&, rows = n_rows, cols = n_cols](int, cudaStream_t s) {
          GemvArgs a;
          a.w[0] = pool.take(rows, cols), a.x = x.data(), a.n_tokens = n_tokens, a.out_f32 = out.data();
          cu::gemv(a, s);
        });
        char name[80];
        std::snprintf(name, sizeof name, "%s %d x %d, %d rows", gguf::type_info(type)->name, n_rows, n_cols,
                      n_tokens);
        print_bandwidth(name, t, (pool.taken - before) / n_calls);
      }
    }
  }
}

}  // namespace
}  // namespace minfer::test
