// Every activation of the pipeline, allocated once, by name.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "core/hparams.h"
#include "cuda/kernels/argmax.h"
#include "cuda/kernels/flash_prefill.h"
#include "cuda/runtime/buffer.h"

namespace minfer::cu {

// Rows that go through the layers together, rows that go through the head together, and rows that
// flash_decode takes at once.
inline constexpr int kMaxRows = 2048;
inline constexpr int kMaxHeadRows = 64;
inline constexpr int kMaxDecodeRows = 64;

struct Workspace {
  Workspace(const HParams& hparams, int n_rows, size_t scratch_elements);
  static uint64_t bytes(const HParams& hparams, int n_rows);  // without the f16 scratch

  // What the rows are; the host fills these.
  DeviceBuffer<int32_t> ids, pos, first_slot, wanted;  // [n_rows]
  DeviceBuffer<FlashTile> tiles;                       // [n_rows]
  DeviceBuffer<int32_t> bad_layer;                     // [n_rows], -1: all finite so far

  DeviceBuffer<float> x;           // [n_rows, n_embd] the residual stream
  DeviceBuffer<half> normed;       // [n_rows, n_embd]
  DeviceBuffer<float> normed_f32;  // [n_rows, n_embd], where the GEMM converts A itself
  // [n_rows, q_dim + 2 kv_dim], and once they are read, gate and up of different types [kGemvMaxRows, 2 n_ff]
  DeviceBuffer<float> qkv;
  DeviceBuffer<half> q;                  // [n_rows, n_head, head_dim]
  DeviceBuffer<half> attended;           // [n_rows, n_head, head_dim]
  DeviceBuffer<half> ffn;                // [n_rows, n_ff] silu(gate) * up * kFfnScale
  DeviceBuffer<float> partials;          // of flash_decode
  DeviceBuffer<uint32_t> arrivals;       // [kMaxDecodeRows, n_head] of flash_decode, 0 between launches
  DeviceBuffer<float> gemm_partials;     // of gemm, in parts of K
  DeviceBuffer<uint32_t> gemm_arrivals;  // 0 between launches
  DeviceBuffer<float> logits;            // [kMaxHeadRows, n_vocab]
  DeviceBuffer<Choice> choices;          // [n_rows]
  DeviceBuffer<std::byte> argmax_scratch;
  DeviceBuffer<half> f16_scratch;  // one matrix, where there is no resident f16 cache
};

}  // namespace minfer::cu
