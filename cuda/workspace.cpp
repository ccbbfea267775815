#include "cuda/workspace.h"

#include <algorithm>

#include "cuda/kernels/flash_decode.h"
#include "cuda/kernels/gemm.h"
#include "cuda/kernels/gemv.h"

namespace minfer::cu {
namespace {

size_t qkv_dim(const HParams& h) {
  return static_cast<size_t>(h.q_dim()) + 2 * static_cast<size_t>(h.kv_dim());
}

size_t qkv_elements(const HParams& h, int n_rows) {
  return std::max(static_cast<size_t>(n_rows) * qkv_dim(h),
                  size_t{kGemvMaxRows} * 2 * static_cast<size_t>(h.n_ff));
}

size_t arrivals_elements(const HParams& h) {
  return size_t{kMaxDecodeRows} * static_cast<size_t>(h.n_head);
}

}  // namespace

Workspace::Workspace(const HParams& h, int n_rows, size_t scratch_elements)
    : ids(n_rows),
      pos(n_rows),
      first_slot(n_rows),
      wanted(n_rows),
      tiles(n_rows),
      bad_layer(n_rows),
      x(size_t(n_rows) * h.n_embd),
      normed(size_t(n_rows) * h.n_embd),
      normed_f32(gemm_wants_f32_a() ? size_t(n_rows) * h.n_embd : 0),
      qkv(qkv_elements(h, n_rows)),
      q(size_t(n_rows) * h.q_dim()),
      attended(size_t(n_rows) * h.q_dim()),
      ffn(size_t(n_rows) * h.n_ff),
      partials(flash_decode_partials(kMaxDecodeRows, h.n_head, h.head_dim)),
      arrivals(arrivals_elements(h)),
      gemm_partials(kGemmPartials),
      gemm_arrivals(kMaxGemmPartBlocks),
      logits(size_t{kMaxHeadRows} * h.n_vocab),
      choices(n_rows),
      argmax_scratch(argmax_scratch_bytes(kMaxHeadRows)),
      f16_scratch(scratch_elements) {
  arrivals.fill_bytes(0);
  gemm_arrivals.fill_bytes(0);
}

uint64_t Workspace::bytes(const HParams& h, int n_rows) {
  const uint64_t a_row =
      5 * sizeof(int32_t) + sizeof(FlashTile) + sizeof(Choice) +
      size_t(h.n_embd) * (sizeof(float) + sizeof(half) + (gemm_wants_f32_a() ? sizeof(float) : 0)) +
      2 * size_t(h.q_dim()) * sizeof(half) + size_t(h.n_ff) * sizeof(half);
  return a_row * static_cast<uint64_t>(n_rows) + qkv_elements(h, n_rows) * sizeof(float) +
         (arrivals_elements(h) + kMaxGemmPartBlocks) * sizeof(uint32_t) + kGemmPartials * sizeof(float) +
         size_t{kMaxHeadRows} * h.n_vocab * sizeof(float) + argmax_scratch_bytes(kMaxHeadRows) +
         flash_decode_partials(kMaxDecodeRows, h.n_head, h.head_dim) * sizeof(float);
}

}  // namespace minfer::cu
