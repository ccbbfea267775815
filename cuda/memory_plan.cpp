#include "cuda/memory_plan.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "core/error.h"
#include "cuda/kernels/packed_matrix.h"
#include "cuda/kv_cache.h"
#include "cuda/uploader.h"
#include "cuda/workspace.h"

namespace minfer::cu {
namespace {

// Left to the driver, the graph and allocation granularity.
constexpr uint64_t kReserve = uint64_t{256} << 20;

std::string gigabytes(uint64_t bytes) {
  return fmt::format("{:.2f} GB", static_cast<double>(bytes) / 1e9);
}

struct Sizes {
  uint64_t blocks = 0, vectors = 0;
  uint64_t largest_row = 0;  // of the file
  uint64_t f16 = 0;
  uint64_t largest_f16 =
      0;  // of the matrices that a GEMM reads (the head goes by matrix-vector products then)
};

void add_matrix(Sizes& s, const gguf::Tensor& t) {
  s.blocks += padded(packed_bytes(t.type, static_cast<int>(t.dims[1]), static_cast<int>(t.dims[0])));
  s.largest_row = std::max<uint64_t>(s.largest_row, t.data.size() / t.dims[1]);
}

uint64_t vector_bytes(uint64_t n) {
  return padded(n * sizeof(float));
}

uint64_t vector_bytes(const HParams& h, const LayerTensors& l) {
  uint64_t bytes = 0;
  for (const gguf::Tensor* t : {l.attn_norm, l.attn_q_norm, l.attn_k_norm, l.ffn_norm}) {
    if (t != nullptr) bytes += vector_bytes(t->n_elements());
  }
  if (l.attn_q_bias || l.attn_k_bias || l.attn_v_bias)
    bytes += vector_bytes(size_t(h.q_dim() + 2 * h.kv_dim()));
  return bytes;
}

Sizes sizes(const HParams& h, const ModelTensors& tensors) {
  Sizes s;
  const auto add = [&](std::initializer_list<const gguf::Tensor*> fused, bool is_head = false) {
    uint64_t f16 = 0;
    for (const gguf::Tensor* t : fused) {
      add_matrix(s, *t);
      f16 += t->n_elements() * 2;
    }
    s.f16 += padded(f16);
    if (!is_head) s.largest_f16 = std::max(s.largest_f16, f16);
  };
  for (const LayerTensors& l : tensors.layers) {
    add({l.attn_q, l.attn_k, l.attn_v});
    add({l.attn_output});
    add({l.ffn_gate, l.ffn_up});
    add({l.ffn_down});
    s.vectors += vector_bytes(h, l);
  }
  add({tensors.output}, true);
  if (tensors.token_embd != tensors.output) add_matrix(s, *tensors.token_embd);
  s.vectors +=
      vector_bytes(tensors.output_norm->n_elements()) + static_cast<uint64_t>(h.n_rot / 2) * sizeof(double);
  return s;
}

int32_t least_kv_tokens(const CudaOptions& options) {
  return options.n_kv_tokens_least > 0 ? std::min(options.n_kv_tokens_least, options.n_kv_tokens)
                                       : options.n_kv_tokens;
}

// A plan that fits, with as many of the KV slots asked for as there is room for.
MemoryPlan with_more_kv(MemoryPlan plan, const HParams& h, int32_t n_wanted, uint64_t available) {
  const uint64_t room = (available - (plan.total() - plan.kv)) / KvCache::bytes(h, 1);
  plan.n_kv_tokens = static_cast<int32_t>(std::min(static_cast<uint64_t>(n_wanted), room));
  plan.kv = KvCache::bytes(h, plan.n_kv_tokens);
  return plan;
}

}  // namespace

std::string MemoryPlan::describe() const {
  return fmt::format("{} needed: blocks {}, f16 cache {}, KV {} ({} tokens), workspace {}", gigabytes(peak()),
                     gigabytes(blocks + vectors), use_f16_cache ? gigabytes(f16_cache) : "off", gigabytes(kv),
                     n_kv_tokens, gigabytes(workspace + scratch)) +
         (peak() > total()
              ? fmt::format(", while loading {} of staging in place of the last two", gigabytes(staging))
              : "");
}

MemoryPlan plan_memory(const HParams& h, const ModelTensors& tensors, const CudaOptions& options,
                       uint64_t free_bytes) {
  const Sizes s = sizes(h, tensors);
  MemoryPlan plan;
  plan.blocks = s.blocks;
  plan.vectors = s.vectors;
  plan.staging = upload_staging_bytes(s.largest_row);
  plan.n_kv_tokens = least_kv_tokens(options);
  plan.kv = KvCache::bytes(h, plan.n_kv_tokens);
  plan.workspace = Workspace::bytes(h, kMaxRows);

  const uint64_t available = free_bytes > kReserve ? free_bytes - kReserve : 0;
  const auto with_cache = [&](bool on) {
    plan.use_f16_cache = on;
    plan.f16_cache = on ? s.f16 : 0;
    plan.scratch = on ? 0 : s.largest_f16;
    return plan.peak() <= available;
  };
  const bool fits_with = with_cache(true);
  if (options.f16_cache == F16Cache::kOn || (options.f16_cache == F16Cache::kAuto && fits_with)) {
    if (fits_with) return with_more_kv(plan, h, options.n_kv_tokens, available);
  } else if (with_cache(false)) {
    return with_more_kv(plan, h, options.n_kv_tokens, available);
  }
  const std::string needed =
      fmt::format("device memory: {}, {} available", plan.describe(), gigabytes(available));
  const uint64_t without_kv = plan.total() - plan.kv, loading = plan.loading();
  const uint64_t a_token = KvCache::bytes(h, 1);
  if (with_cache(false) && options.f16_cache == F16Cache::kOn) {
    throw Error(ExitCode::kDevice, needed + "; --f16-cache off would fit");
  }
  if (std::max(without_kv + a_token, loading) <= available) {
    throw Error(ExitCode::kDevice,
                fmt::format("{}; -c {} would fit", needed, (available - without_kv) / a_token));
  }
  throw Error(ExitCode::kDevice, needed + "; no context would fit");
}

}  // namespace minfer::cu
