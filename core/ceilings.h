// What a machine can do at best: every measured speed is printed beside its share of this.
#pragma once

#include <string>

namespace minfer {

struct Ceilings {
  double bytes_per_second = 0;  // reading memory; 0: unknown
  double flops_per_second = 0;  // dense f16 products, f32 sums; 0: unknown
  std::string described;        // where the two come from, for a report
};

// Work done in a time, held against the ceiling that binds it: the one that the work would take longer to
// reach.
struct Speed {
  double per_second = 0;  // flops or bytes a second
  bool is_flops = false;
  double of_ceiling = 0;         // 0: the ceiling is unknown
  std::string describe() const;  // "  612.3 TFLOP/s  61.9 %", "n/a" where there is no work to speak of
};
// flops and bytes: what has to be done at least; either may be 0. Without ceilings, work of more than 100
// flops a byte counts as bound by flops: where one card's two ceilings balance is 150 to 300.
Speed speed(double flops, double bytes, double seconds, const Ceilings& ceilings);

}  // namespace minfer
