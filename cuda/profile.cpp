#include "cuda/profile.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "core/bench.h"
#include "core/cancel.h"
#include "core/error.h"
#include "core/sequence.h"
#include "core/stopwatch.h"
#include "cuda/engine.h"
#include "cuda/profiler.h"

namespace minfer::cu {
namespace {

constexpr int kRuns = 5;

Profiled& profiled(Engine& engine) {
  if (auto* p = dynamic_cast<Profiled*>(&engine)) return *p;
  throw Error(ExitCode::kUsage, "--profile: the engine '" + engine.description() + "' has no profiler");
}

// A profiler at work in an engine while this lives.
class Profiling {
 public:
  explicit Profiling(Engine& engine) : engine_(profiled(engine)) { engine_.set_profiler(&profiler_); }
  ~Profiling() { engine_.set_profiler(nullptr); }
  Profiling(const Profiling&) = delete;
  Profiling& operator=(const Profiling&) = delete;

  void forget() { profiler_.collect(); }

  // Adds what was seen since the last time, 1 / n of it.
  void add_to(Profile& profile, int n) {
    profile.profiled_seconds += profiler_.elapsed_ms() * 1e-3 / n;
    for (const Profiler::Op& op : profiler_.collect()) {
      auto it = std::find_if(profile.ops.begin(), profile.ops.end(),
                             [&](const ProfiledOp& o) { return o.name == op.name; });
      if (it == profile.ops.end()) it = profile.ops.insert(it, ProfiledOp{.name = op.name});
      it->n_calls += 1.0 * op.n_calls / n;
      it->seconds += op.ms * 1e-3 / n;
      it->flops += op.flops / n;
      it->bytes += op.bytes / n;
    }
  }

 private:
  Profiled& engine_;
  Profiler profiler_;
};

ProfiledOp* find(Profile& profile, const char* name) {
  const auto it = std::find_if(profile.ops.begin(), profile.ops.end(),
                               [&](const ProfiledOp& o) { return o.name == name; });
  return it == profile.ops.end() ? nullptr : &*it;
}

Batch prompt(SeqId seq, std::span<const TokenId> ids) {
  Batch batch;
  for (size_t i = 0; i < ids.size(); ++i) {
    batch.add(seq, static_cast<int32_t>(i), ids[i], i + 1 == ids.size() ? Want::kArgmax : Want::kNothing);
  }
  return batch;
}

}  // namespace

Profile profile_prefill(Engine& engine, const ModelCost& cost, std::span<const TokenId> ids) {
  const Sequence seq(engine, static_cast<int32_t>(ids.size()));
  const Batch batch = prompt(seq.id(), ids);
  Profile profile{.what = fmt::format("prefill of {} tokens", ids.size())};
  const auto run = [&] {
    throw_if_interrupted();
    engine.kv_truncate(seq.id(), 0);
    const Stopwatch clock;
    check_finite(engine.forward(batch).back(), engine, 0);
    return clock.seconds();
  };
  std::vector<double> seconds;
  for (int i = 0; i <= kRuns; ++i) {
    const double s = run();
    if (i > 0) seconds.push_back(s);
  }
  profile.wall_seconds = Times::of(std::move(seconds)).median;

  Profiling profiling(engine);
  run();  // makes the events
  profiling.forget();
  for (int i = 0; i < kRuns; ++i) {
    run();
    profiling.add_to(profile, kRuns);
  }
  if (ProfiledOp* op = find(profile, "flash_prefill")) {  // the pipeline does not know where its rows stand
    op->flops = engine.hparams().n_layer * cost.attention_flops(static_cast<int64_t>(ids.size()), 0);
  }
  return profile;
}

Profile profile_decode(Engine& engine, const ModelCost& cost, std::span<const TokenId> ids) {
  const auto depth = static_cast<int32_t>(ids.size());
  const Sequence seq(engine, depth + kProfiledSteps);
  Profile profile{.what = fmt::format("one decode step behind {} tokens, mean of {}", depth, kProfiledSteps)};
  const auto rewind = [&] {
    engine.kv_truncate(seq.id(), 0);
    engine.forward(prompt(seq.id(), ids));
  };
  const auto step = [&](int i) {
    throw_if_interrupted();
    Batch batch;
    batch.add(seq.id(), depth + i, kLastArgmax, Want::kArgmax);
    check_finite(engine.forward(batch).back(), engine, i);
  };
  std::vector<double> seconds;
  for (int run = 0; run <= kRuns; ++run) {
    rewind();
    const Stopwatch clock;
    for (int i = 0; i < kProfiledSteps; ++i) step(i);
    if (run > 0) seconds.push_back(clock.seconds() / kProfiledSteps);
  }
  profile.wall_seconds = Times::of(std::move(seconds)).median;

  rewind();
  Profiling profiling(engine);
  double attention_bytes = 0;
  for (int i = 0; i < kProfiledSteps; ++i) {
    step(i);
    profiling.add_to(profile, kProfiledSteps);
    attention_bytes += engine.hparams().n_layer * cost.attention_bytes(depth + i) / kProfiledSteps;
  }
  if (ProfiledOp* op = find(profile, "flash_decode")) op->bytes = attention_bytes;
  return profile;
}

}  // namespace minfer::cu
