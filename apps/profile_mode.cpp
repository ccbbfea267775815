#include <spdlog/fmt/fmt.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "apps/measuring.h"
#include "apps/modes.h"
#include "apps/output.h"
#include "core/bench.h"
#include "core/error.h"
#include "core/profile.h"
#include "cuda/profile.h"

namespace minfer {
namespace {

std::string json_lines(const Profile& p, const Measured& m) {
  std::string out;
  const auto add = [&](const std::string& op, double n_calls, double seconds, double flops, double bytes) {
    const Speed s = speed(flops, bytes, seconds, m.ceilings);
    nlohmann::ordered_json j{{"profile", p.what},
                             {"op", op},
                             {"calls", n_calls},
                             {"seconds", seconds},
                             {"share", seconds / p.wall_seconds},
                             {"speed", s.per_second},
                             {"speed_unit", s.is_flops ? "flop/s" : "byte/s"},
                             {"of_ceiling", nullptr},
                             {"device", m.engine->description()},
                             {"switches", switches_in_use()}};
    if (s.of_ceiling > 0) j["of_ceiling"] = s.of_ceiling;
    out += j.dump() + "\n";
  };
  for (const ProfiledOp& op : p.ops) add(op.name, op.n_calls, op.seconds, op.flops, op.bytes);
  const ProfiledOp all = p.sum();
  add(all.name, all.n_calls, all.seconds, all.flops, all.bytes);
  add("not accounted for", 0, p.unaccounted_seconds(), 0, 0);
  add("wall clock", 0, p.wall_seconds, all.flops, all.bytes);
  return out;
}

}  // namespace

ExitCode run_profile(const Options& options) {
  const Device device = choose_device(options);
  if (!device.is_cuda) {
    throw Error(options.device == DeviceChoice::kCpu ? ExitCode::kUsage : ExitCode::kDevice,
                "--profile: only the CUDA engine has a profiler, and this run is on the CPU (" +
                    (device.why.empty() ? "--device cpu" : device.why) + ")");
  }
  constexpr int32_t kMost = std::numeric_limits<int32_t>::max() - cu::kProfiledSteps;
  if (options.n_profile > kMost) {
    throw Error(ExitCode::kUsage, fmt::format("--profile-prefill {}: at most {}", options.n_profile, kMost));
  }
  const int32_t n_kv = options.n_profile + cu::kProfiledSteps;
  const Measured m(device, options, n_kv, n_kv);
  const std::vector<TokenId> ids = random_tokens(static_cast<size_t>(options.n_profile), m.n_vocab, 1);
  if (!options.json) {
    write_stdout(fmt::format("device   {}\nceilings {}\n", m.engine->description(), m.ceilings.described));
    if (const std::string set = switches_in_use(); !set.empty()) write_stdout("switches " + set + "\n");
  }
  for (const auto& profile : {cu::profile_prefill, cu::profile_decode}) {
    const Profile p = profile(*m.engine, m.cost, ids);
    write_stdout(options.json ? json_lines(p, m) : fmt::format("\n{}", profile_table(p, m.ceilings)));
  }
  return ExitCode::kOk;
}

}  // namespace minfer
