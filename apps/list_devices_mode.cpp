#include <spdlog/fmt/fmt.h>
#include <nlohmann/json.hpp>

#include "apps/modes.h"
#include "apps/output.h"
#include "core/process.h"
#include "cuda/runtime/device_info.h"
#include "gguf/isa.h"

namespace minfer {
namespace {

constexpr const char* kNotFirst = "not the first card, which is the one that minfer runs on";

// What a model can run on; `why_not` says why it cannot.
struct Listed {
  nlohmann::ordered_json fields;
  std::string text;
  std::string why_not;
};

std::string gigabytes(uint64_t bytes) {
  return fmt::format("{:.1f} GB", static_cast<double>(bytes) / 1e9);
}

Listed processor() {
  const int n = usable_processors();
  const std::string isa = gguf::isa_name(gguf::isa());
  const uint64_t total = total_memory_bytes(), available = available_memory_bytes();
  return {.fields = {{"device", "cpu"},
                     {"processors", n},
                     {"instruction_set", isa},
                     {"memory_bytes", total},
                     {"available_bytes", available}},
          .text = fmt::format("cpu: {} processor{}, {}, {} of memory, {} of it available", n,
                              n == 1 ? "" : "s", isa, gigabytes(total), gigabytes(available)),
          .why_not = ""};
}

Listed card(size_t index, const cu::DeviceInfo& info, const std::string& why_not) {
  const std::string capability = fmt::format("{}.{}", info.compute_major, info.compute_minor);
  return {.fields = {{"device", "cuda"},
                     {"index", index},
                     {"name", info.name},
                     {"compute_capability", capability},
                     {"memory_bytes", info.memory_bytes}},
          .text = fmt::format("cuda {}: {}, compute capability {}, {} of memory", index, info.name,
                              capability, gigabytes(info.memory_bytes)),
          .why_not = why_not};
}

std::vector<Listed> list() {
  std::vector<Listed> all = {processor()};
  const cu::Devices devices = cu::list_devices();
  for (size_t i = 0; i < devices.found.size(); ++i) {
    all.push_back(card(i, devices.found[i], i == 0 ? cu::why_unusable() : kNotFirst));
  }
  if (devices.found.empty()) {
    all.push_back({.fields = {{"device", "cuda"}}, .text = "cuda", .why_not = devices.why_none});
  }
  return all;
}

}  // namespace

ExitCode run_list_devices(const Options& options) {
  std::string out;
  for (Listed& listed : list()) {
    const bool usable = listed.why_not.empty();
    if (options.json) {
      listed.fields["usable"] = usable;
      if (!usable) listed.fields["why_not"] = listed.why_not;
      out += listed.fields.dump() + "\n";
    } else {
      out += listed.text + (usable ? ": usable" : ": not usable, " + listed.why_not) + "\n";
    }
  }
  write_stdout(out);
  return ExitCode::kOk;
}

}  // namespace minfer
