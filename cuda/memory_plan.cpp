#include "cuda/memory_plan.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "core/error.h"
#include "cuda/kernels/packed_matrix.h"
#include "cuda/kv_cache.h"
#include "cuda/workspace.h"

namespace minfer::cu {
namespace {

// Left to the driver, the graph and allocation granularity.
constexpr uint64_t kReserve = uint64_t{256} << 20;

std::string gigabytes(uint64_t bytes) {
  return fmt::format("{:.2f} GB", static_cast<double>(bytes) / 1e9);
}

struct Sizes {
  uint64_t blocks = 0;
  uint64_t f16 = 0;
  uint64_t largest_f16 =
      0;  // of the matrices that a GEMM reads (the head goes by matrix-vector products then)
};

uint64_t packed(const gguf::Tensor& t) {
  return packed_bytes(t.type, static_cast<int>(t.dims[1]), static_cast<int>(t.dims[0]));
}

Sizes sizes(const ModelTensors& tensors) {
  Sizes s;
  const auto add = [&](std::initializer_list<const gguf::Tensor*> fused, bool is_head = false) {
    uint64_t f16 = 0;
    for (const gguf::Tensor* t : fused) {
      s.blocks += packed(*t);
      f16 += t->n_elements() * 2;
    }
    s.f16 += f16;
    if (!is_head) s.largest_f16 = std::max(s.largest_f16, f16);
  };
  for (const LayerTensors& l : tensors.layers) {
    add({l.attn_q, l.attn_k, l.attn_v});
    add({l.attn_output});
    add({l.ffn_gate, l.ffn_up});
    add({l.ffn_down});
  }
  add({tensors.output}, true);
  if (tensors.token_embd != tensors.output) s.blocks += packed(*tensors.token_embd);
  return s;
}

}  // namespace

std::string MemoryPlan::describe() const {
  return fmt::format("{} needed: blocks {}, f16 cache {}, KV {}, workspace {}", gigabytes(total()),
                     gigabytes(blocks), use_f16_cache ? gigabytes(f16_cache) : "off", gigabytes(kv),
                     gigabytes(workspace + scratch));
}

MemoryPlan plan_memory(const HParams& h, const ModelTensors& tensors, const CudaOptions& options,
                       uint64_t free_bytes) {
  const Sizes s = sizes(tensors);
  MemoryPlan plan;
  plan.blocks = s.blocks;
  plan.kv = KvCache::bytes(h, options.n_kv_tokens);
  plan.workspace = Workspace::bytes(h, kMaxRows);

  const uint64_t available = free_bytes > kReserve ? free_bytes - kReserve : 0;
  const auto with_cache = [&](bool on) {
    plan.use_f16_cache = on;
    plan.f16_cache = on ? s.f16 : 0;
    plan.scratch = on ? 0 : s.largest_f16;
    return plan.total() <= available;
  };
  const bool fits_with = with_cache(true);
  if (options.f16_cache == F16Cache::kOn || (options.f16_cache == F16Cache::kAuto && fits_with)) {
    if (fits_with) return plan;
  } else if (with_cache(false)) {
    return plan;
  }
  const std::string needed =
      fmt::format("device memory: {}, {} available", plan.describe(), gigabytes(available));
  const uint64_t without_kv = plan.total() - plan.kv;
  const uint64_t a_token = KvCache::bytes(h, 1);
  if (with_cache(false) && options.f16_cache == F16Cache::kOn) {
    throw Error(ExitCode::kDevice, needed + "; --f16-cache off would fit");
  }
  if (without_kv + a_token <= available) {
    throw Error(ExitCode::kDevice,
                fmt::format("{}; -c {} would fit", needed, (available - without_kv) / a_token));
  }
  throw Error(ExitCode::kDevice, needed + "; no context would fit");
}

}  // namespace minfer::cu
