#include "cuda/ceilings.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstdint>

#include "cuda/kernels/read_all.h"
#include "cuda/runtime/buffer.h"
#include "cuda/runtime/check.h"
#include "cuda/runtime/stream.h"

namespace minfer::cu {
namespace {

constexpr int kPasses = 6;

int attribute(cudaDeviceAttr which) {
  int device = 0, value = 0;
  check(cudaGetDevice(&device), "ceilings");
  check(cudaDeviceGetAttribute(&value, which, device), "ceilings");
  return value;
}

// Past any L2, so that every byte comes from memory; the best of a few passes.
double measure_read() {
  size_t free_bytes = 0, total_bytes = 0;
  check(cudaMemGetInfo(&free_bytes, &total_bytes), "ceilings");
  const size_t l2 = static_cast<size_t>(attribute(cudaDevAttrL2CacheSize));
  const size_t bytes = std::min(std::max<size_t>(size_t{1} << 30, 16 * l2), free_bytes / 2) / 16 * 16;
  if (bytes < 8 * l2) return 0;
  const DeviceBuffer<std::byte> buffer(bytes);
  const DeviceBuffer<uint32_t> sink(1);
  const Stream stream;
  Event start, stop;
  check(cudaMemsetAsync(buffer.data(), 0, bytes, stream.get()), "ceilings");
  float best = 0;
  for (int pass = 0; pass < kPasses; ++pass) {
    start.record(stream.get());
    read_all({.in = buffer.data(), .bytes = bytes, .sink = sink.data()}, stream.get());
    stop.record(stream.get());
    stop.synchronize();
    const float ms = stop.since(start);
    if (pass > 0) best = pass == 1 ? ms : std::min(best, ms);  // the first one warms up
  }
  return static_cast<double>(bytes) / (static_cast<double>(best) * 1e-3);
}

// Flops a clock and SM of the tensor cores, f16 operands, f32 sums, dense. NVIDIA's architecture white
// papers: A100 312 TFLOP/s = 108 SMs * 1.41 GHz * 2048; RTX 3090 71 = 82 * 1.70 * 512; RTX 4090 165 = 128
// * 2.52 * 512 (workstation cards of 8.6 and 8.9 may do twice that); H100 SXM 989 = 132 * 1.83 * 4096.
double flops_a_clock(int major, int minor) {
  switch (10 * major + minor) {
    case 80:
      return 2048;
    case 86:
    case 89:
      return 512;
    case 90:
      return 4096;
    default:
      return 0;
  }
}

}  // namespace

Ceilings measure_ceilings() {
  const int major = attribute(cudaDevAttrComputeCapabilityMajor),
            minor = attribute(cudaDevAttrComputeCapabilityMinor);
  const int n_sm = attribute(cudaDevAttrMultiProcessorCount);
  const double hertz = 1e3 * attribute(cudaDevAttrClockRate);
  Ceilings c;
  c.bytes_per_second = measure_read();
  c.flops_per_second = n_sm * hertz * flops_a_clock(major, minor);
  const std::string products =
      c.flops_per_second > 0
          ? fmt::format("f16 products {:.0f} TFLOP/s nominal ({} SMs, {:.2f} GHz, {:.0f} flops a clock)",
                        c.flops_per_second / 1e12, n_sm, hertz / 1e9, flops_a_clock(major, minor))
          : fmt::format("f16 products: n/a for compute capability {}.{}", major, minor);
  c.described = c.bytes_per_second > 0
                    ? fmt::format("read {:.0f} GB/s measured, {}", c.bytes_per_second / 1e9, products)
                    : fmt::format("read: n/a, too little memory is free to measure it, {}", products);
  return c;
}

}  // namespace minfer::cu
