// What the current card can do at best.
#pragma once

#include "core/ceilings.h"

namespace minfer::cu {

// Reading is measured (under 0.1 s, best of a few passes over 1 GB); products are nominal: SM count times the
// highest clock times what the architecture's tensor cores do a clock with f16 operands and f32 sums. Unknown
// (0) where too little memory is free to outgrow the L2 cache, and on architectures whose rate is not listed.
Ceilings measure_ceilings();

}  // namespace minfer::cu
