// How fast flash_decode is: `test_cuda "[.bench]"`.
#include "cuda/kernels/flash_decode.h"
#include "tests/cuda/flash_oracle.h"

using namespace minfer;
using test::FlashShape;
using test::random_q;

TEST_CASE("flash_decode: time", "[.bench]") {
  MINFER_REQUIRE_GPU();
  struct Job {
    FlashShape shape;
    int n_keys, n_tokens;
  };
  for (const Job& job : {Job{{28, 4, 128}, 100, 1}, Job{{28, 4, 128}, 512, 1}, Job{{28, 4, 128}, 2048, 1},
                         Job{{28, 4, 128}, 8192, 1}, Job{{28, 4, 128}, 32768, 1},
                         Job{{28, 4, 128}, 131071, 1}, Job{{28, 4, 128}, 512, 8}, Job{{28, 4, 128}, 4096, 8},
                         Job{{28, 4, 128}, 130, 64}, Job{{28, 4, 128}, 512, 64}, Job{{14, 2, 64}, 512, 1},
                         Job{{14, 2, 64}, 8192, 1}, Job{{32, 8, 128}, 8192, 1}, Job{{16, 4, 256}, 8192, 1}}) {
    const FlashShape& s = job.shape;
    const int n_slots = job.n_keys * job.n_tokens;
    const double bytes = 4.0 * s.n_head_kv * n_slots * s.head_dim;
    const int n_sets =
        std::clamp(static_cast<int>(200e6 / bytes) + 1, 2, 100);  // past L2, as the weights would push it
    const auto kv = test::repeated_normal(size_t{1} * s.n_head_kv * n_slots * s.head_dim, 1);
    std::vector<cu::DeviceBuffer<half>> k, v;
    for (int i = 0; i < n_sets; ++i) {
      k.emplace_back(std::span<const half>(kv));
      v.emplace_back(std::span<const half>(kv));
    }
    const cu::DeviceBuffer<half> q{std::span<const half>(random_q(s, job.n_tokens, 2))};
    const cu::DeviceBuffer<half> out(q.size());
    std::vector<int32_t> host_pos(job.n_tokens, job.n_keys - 1), host_slots;
    for (int t = 0; t < job.n_tokens; ++t) host_slots.push_back(t * job.n_keys);
    const cu::DeviceBuffer<int32_t> pos{std::span<const int32_t>(host_pos)},
        slots{std::span<const int32_t>(host_slots)};
    const cu::DeviceBuffer<float> partials(cu::flash_decode_partials(job.n_tokens, s.n_head, s.head_dim));
    cu::DeviceBuffer<uint32_t> arrivals(size_t{1} * job.n_tokens * s.n_head);
    arrivals.fill_bytes(0);
    const int n_splits = job.n_tokens > 8 ? cu::flash_decode_splits(job.n_keys, s.n_head, s.n_head_kv) : 0;
    for (const bool last_block : {true, false}) {
      const auto time = test::time_graph(n_sets, 25, [&](int i, cudaStream_t stream) {
        cu::flash_decode({.q = q.data(),
                          .kv = {k[i].data(), v[i].data(), n_slots},
                          .rows = {pos.data(), slots.data()},
                          .out = out.data(),
                          .partials = partials.data(),
                          .arrivals = last_block ? arrivals.data() : nullptr,
                          .n_tokens = job.n_tokens,
                          .n_head = s.n_head,
                          .n_head_kv = s.n_head_kv,
                          .head_dim = s.head_dim,
                          .scale = s.scale(),
                          .n_splits = n_splits},
                         stream);
      });
      const double gbps = bytes / time.median * 1e-3;
      std::printf(
          "flash_decode %2d:%-2d x %3d  %6d keys x %d, %s: %7.2f us (%.2f - %.2f)  %5.0f GB/s  %3.0f %% of "
          "4390\n",
          s.n_head, s.n_head_kv, s.head_dim, job.n_keys, job.n_tokens,
          last_block ? "last block   " : "second launch", time.median, time.min, time.max, gbps, gbps / 43.9);
    }
  }
}
