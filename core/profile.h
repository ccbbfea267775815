// Where the time of a piece of work goes, op by op, against the wall clock.
#pragma once

#include <string>
#include <vector>

#include "core/ceilings.h"

namespace minfer {

struct ProfiledOp {
  std::string name;
  double n_calls = 0;
  double seconds = 0, flops = 0, bytes = 0;  // of all calls; flops and bytes: what has to be done at least
};

struct Profile {
  std::string what;               // "prefill of 2048 tokens"
  std::vector<ProfiledOp> ops{};  // in the order in which they run
  double wall_seconds = 0;        // of the same work without the profiler
  double profiled_seconds = 0;    // with it: its events stand between the ops and cost time of their own

  ProfiledOp sum() const;  // of all ops
  double unaccounted_seconds() const { return wall_seconds - sum().seconds; }
};

// A table: op, calls, ms, share of the wall clock, speed and its share of the ceiling; then the sum, what is
// not accounted for (below 0 where the profiler's own cost shows), and the wall clock.
std::string profile_table(const Profile& profile, const Ceilings& ceilings);

}  // namespace minfer
