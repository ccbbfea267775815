#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>

#include "apps/device.h"
#include "apps/input.h"
#include "apps/modes.h"
#include "apps/output.h"
#include "core/error.h"
#include "core/generator.h"
#include "core/verify.h"

namespace minfer {
namespace {

std::string describe(const RowDifference& d, const Tokenizer& tokenizer) {
  return fmt::format("row {}: {} '{}' on the CPU, {} '{}' here; margin {:.4f}, row error {:.2e}", d.pos,
                     d.reference, tokenizer.token_bytes(d.reference, true), d.candidate,
                     tokenizer.token_bytes(d.candidate, true), d.margin, d.error);
}

std::string describe(const VerifyReport& r, const Tokenizer& tokenizer) {
  std::string out = fmt::format("{:<20}{}: {} of the prompt, {} generated\n", "rows", r.n_rows(), r.n_prompt,
                                r.n_generated);
  out += fmt::format(
      "{:<20}mean {:.2e} (at most {:.1e} with {} layers), worst {:.2e} in row {} (at most {:.1e})\n",
      "logit error", r.logits.mean, mean_tolerance(r.n_layer), r.n_layer, r.logits.worst, r.logits.worst_pos,
      row_tolerance(r.n_layer));
  out += fmt::format("{:<20}{} of {} ({:.2f} %)\n", "argmax equal", r.n_argmax_equal, r.n_rows(),
                     100.0 * r.n_argmax_equal / r.n_rows());
  out += fmt::format("{:<20}{} of {} rows with a margin of {} or more (at least {:.0f} %)\n",
                     "argmax, where clear", r.n_clear_equal, r.n_clear, kClearMargin, 100 * kClearAgreement);
  out += fmt::format("{:<20}{}\n", "first difference",
                     r.first_difference ? describe(*r.first_difference, tokenizer) : "none");
  if (r.first_not_finite) out += fmt::format("{:<20}row {}\n", "not finite", *r.first_not_finite);
  if (!r.layers.empty()) out += fmt::format("{:<20}{:>10} {:>10} {:>8}\n", "layer", "mean", "worst", "row");
  for (size_t l = 0; l < r.layers.size(); ++l) {
    out += fmt::format("{:<20}{:>10.2e} {:>10.2e} {:>8}\n", l, r.layers[l].mean, r.layers[l].worst,
                       r.layers[l].worst_pos);
  }
  return out + fmt::format("{:<20}{}\n", "verdict", r.passed() ? "passed" : "FAILED");
}

}  // namespace

ExitCode run_verify(const Options& options) {
  const Device device = choose_device(options);
  if (!device.is_cuda) {
    throw Error(ExitCode::kUsage,
                "--verify: holds the CUDA engine against the CPU's, and this run is on the CPU (" +
                    (device.why.empty() ? "--device cpu" : device.why) + ")");
  }
  const std::string prompt = read_prompt(options);
  const gguf::Reader file = gguf::Reader::open(options.model);
  const auto tokenizer = Tokenizer::from_metadata(file.metadata(), {.pretokenizer = options.pretokenizer});
  const auto ids = tokenizer->encode(prompt, {.parse_special = options.parse_special});
  const GenerateOptions generation{.n_predict = options.generation.n_predict,
                                   .n_ctx = options.generation.n_ctx};
  const int32_t n_prompt = static_cast<int32_t>(ids.size());
  const int32_t n_kv = kv_tokens_needed(HParams::read(file), n_prompt, generation);

  const auto candidate = make_engine(device, options, file, *tokenizer, n_kv);
  const auto reference = make_cpu_engine(options, file, *tokenizer);
  spdlog::info("reference: {}", reference->description());
  const VerifyReport report =
      verify(*reference, *candidate, ids, {.n_generate = n_kv - n_prompt, .layers = options.verify_layers});
  write_stdout(describe(report, *tokenizer));
  return report.passed() ? ExitCode::kOk : ExitCode::kRuntime;
}

}  // namespace minfer
