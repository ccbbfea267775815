#include "core/profile.h"

#include <spdlog/fmt/fmt.h>

namespace minfer {
namespace {

std::string row(const std::string& name, const std::string& calls, double seconds, double wall,
                const std::string& rest) {
  return fmt::format("{:<18} {:>6} {:>10.4f} {:>6.1f} % {}\n", name, calls, seconds * 1e3,
                     100 * seconds / wall, rest);
}

}  // namespace

ProfiledOp Profile::sum() const {
  ProfiledOp all{.name = "sum of ops"};
  for (const ProfiledOp& op : ops) {
    all.n_calls += op.n_calls;
    all.seconds += op.seconds;
    all.flops += op.flops;
    all.bytes += op.bytes;
  }
  return all;
}

std::string profile_table(const Profile& p, const Ceilings& ceilings) {
  std::string out = fmt::format("{}\n{:<18} {:>6} {:>10} {:>8} {:>16} {:>8}\n", p.what, "op", "calls", "ms",
                                "share", "speed", "ceiling");
  std::vector<ProfiledOp> ops = p.ops;
  ops.push_back(p.sum());
  for (const ProfiledOp& op : ops) {
    out += row(op.name, fmt::format("{:.0f}", op.n_calls), op.seconds, p.wall_seconds,
               speed(op.flops, op.bytes, op.seconds, ceilings).describe());
  }
  out += row("not accounted for", "", p.unaccounted_seconds(), p.wall_seconds, "");
  const ProfiledOp all = p.sum();
  out += row("wall clock", "", p.wall_seconds, p.wall_seconds,
             speed(all.flops, all.bytes, p.wall_seconds, ceilings).describe());
  return out +
         fmt::format("with the profiler's events between the ops: {:.4f} ms\n", p.profiled_seconds * 1e3);
}

}  // namespace minfer
