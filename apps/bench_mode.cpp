#include <spdlog/fmt/fmt.h>

#include <nlohmann/json.hpp>

#include "apps/measuring.h"
#include "apps/modes.h"
#include "apps/output.h"
#include "core/error.h"
#include "core/json_line.h"

namespace minfer {
namespace {

std::string header(const Measured& m) {
  std::string out = fmt::format("{:<10}{}\n{:<10}{}\n{:<10}{}\n", "model", m.file.name(), "device",
                                m.engine->description(), "ceilings", m.ceilings.described);
  if (const std::string set = switches_in_use(); !set.empty())
    out += fmt::format("{:<10}{}\n", "switches", set);
  out +=
      fmt::format("{:<10}prefill: {}\n{:<10}decode: {}\n{:<10}{}\n", "clock", kPrefillClock, "", kDecodeClock,
                  "", "outside: loading, tokenizing, drawing the ids, what stands in the KV cache before");
  return out + fmt::format("{:<8} {:>7} {:>9} {:>7} {:>5} {:>11} {:>24} {:>12} {:>16} {:>8}\n", "test",
                           "tokens", "sequences", "depth", "runs", "ms, median", "min .. max", "tokens/s",
                           "speed", "ceiling");
}

std::string row(const Measurement& r, const Ceilings& ceilings) {
  return fmt::format("{:<8} {:>7} {:>9} {:>7} {:>5} {:>11.3f} {:>10.3f} .. {:>10.3f} {:>12.1f} {}\n",
                     bench_kind_name(r.kind), r.n_tokens, r.n_sequences, r.depth, r.n_repetitions,
                     r.seconds.median * 1e3, r.seconds.min * 1e3, r.seconds.max * 1e3, r.tokens_per_second(),
                     speed(r.cost.flops, r.cost.bytes, r.seconds.median, ceilings).describe());
}

nlohmann::ordered_json json_row(const Measurement& r, const Measured& m) {
  const Speed s = speed(r.cost.flops, r.cost.bytes, r.seconds.median, m.ceilings);
  nlohmann::ordered_json j{{"test", bench_kind_name(r.kind)},
                           {"tokens", r.n_tokens},
                           {"sequences", r.n_sequences},
                           {"depth", r.depth},
                           {"repetitions", r.n_repetitions},
                           {"seconds", r.seconds.median},
                           {"seconds_min", r.seconds.min},
                           {"seconds_max", r.seconds.max},
                           {"tokens_per_second", r.tokens_per_second()},
                           {"flops", r.cost.flops},
                           {"bytes", r.cost.bytes},
                           {"speed", s.per_second},
                           {"speed_unit", s.is_flops ? "flop/s" : "byte/s"},
                           {"of_ceiling", nullptr},
                           {"choices", fmt::format("{:016x}", r.choices)},
                           {"model", m.file.name()},
                           {"device", m.engine->description()},
                           {"switches", switches_in_use()},
                           {"clock", r.kind == BenchKind::kPrefill ? kPrefillClock : kDecodeClock}};
  if (s.of_ceiling > 0) j["of_ceiling"] = s.of_ceiling;
  return j;
}

}  // namespace

ExitCode run_bench(const Options& options) {
  const Device device = choose_device(options);
  if (options.bench.prefill.empty() && options.bench.decode.empty()) {
    throw Error(ExitCode::kUsage,
                "--bench: nothing to measure: --bench-prefill and --bench-decode are both 0");
  }
  if (options.bench.batch.empty()) throw Error(ExitCode::kUsage, "--bench-batch 0: 1 is the least");
  const Measured m(device, options, bench_kv_tokens(options.bench), bench_context(options.bench));
  if (!options.json) write_stdout(header(m));
  bench(*m.engine, m.cost, m.n_vocab, options.bench, [&](const Measurement& r) {
    write_stdout(options.json ? json_line(json_row(r, m)) : row(r, m.ceilings));
  });
  return ExitCode::kOk;
}

}  // namespace minfer
