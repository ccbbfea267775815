#include "core/ceilings.h"

#include <spdlog/fmt/fmt.h>

namespace minfer {

Speed speed(double flops, double bytes, double seconds, const Ceilings& c) {
  Speed s;
  if (seconds <= 0) return s;
  if (c.flops_per_second > 0 && c.bytes_per_second > 0) {
    s.is_flops = flops / c.flops_per_second > bytes / c.bytes_per_second;
  } else {
    constexpr double kFlopsPerByte = 100;
    s.is_flops = flops > bytes * kFlopsPerByte;
  }
  s.per_second = (s.is_flops ? flops : bytes) / seconds;
  const double ceiling = s.is_flops ? c.flops_per_second : c.bytes_per_second;
  if (ceiling > 0) s.of_ceiling = s.per_second / ceiling;
  return s;
}

std::string Speed::describe() const {
  if (per_second <= 0) return fmt::format("{:>15} {:>8}", "n/a", "n/a");
  const std::string share = of_ceiling > 0 ? fmt::format("{:.1f} %", 100 * of_ceiling) : "n/a";
  if (is_flops && per_second < 1e12) return fmt::format("{:7.1f} GFLOP/s {:>8}", per_second / 1e9, share);
  if (is_flops) return fmt::format("{:7.1f} TFLOP/s {:>8}", per_second / 1e12, share);
  return fmt::format("{:10.1f} GB/s {:>8}", per_second / 1e9, share);
}

}  // namespace minfer
