#include "cuda/pipeline.h"

#include <algorithm>
#include <cmath>

#include "cuda/kernels/argmax.h"
#include "cuda/kernels/embed.h"
#include "cuda/kernels/flash_decode.h"
#include "cuda/kernels/flash_prefill.h"
#include "cuda/kernels/rmsnorm.h"
#include "cuda/kernels/rope_store.h"
#include "cuda/kernels/swiglu.h"
#include "cuda/weights.h"

namespace minfer::cu {
namespace {

double packed_size(const FusedWeight& w) {
  double bytes = 0;
  for (int i = 0; i < w.n_parts; ++i) {
    bytes += static_cast<double>(packed_bytes(w.parts[i].type, w.parts[i].n_rows, w.parts[i].n_cols));
  }
  return bytes;
}

GemvEpilogue gemv_epilogue(GemmEpilogue epilogue) {
  switch (epilogue) {
    case GemmEpilogue::kResidual:
      return GemvEpilogue::kResidual;
    case GemmEpilogue::kSwiglu:
      return GemvEpilogue::kSwiglu;
    case GemmEpilogue::kStore:
      break;
  }
  return GemvEpilogue::kStore;
}

float attention_scale(const HParams& h) {
  return 1.0f / std::sqrt(static_cast<float>(h.head_dim));
}

}  // namespace

void Pipeline::layers(const RowGroup& group, cudaStream_t stream,
                      const std::function<void(int)>& after_layer) {
  const int n_rows = group.n_rows;
  check(cudaMemsetAsync(w_.bad_layer.data(), 0xff, sizeof(int32_t) * static_cast<size_t>(n_rows), stream),
        "bad_layer");
  timed("embed", 0, double(n_rows) * h_.n_embd * sizeof(float), stream, [&] {
    embed({.table = m_.token_embd, .ids = w_.ids.data(), .out = w_.x.data(), .n_tokens = n_rows}, stream);
  });
  for (int l = 0; l < h_.n_layer; ++l) {
    layer(l, group, stream);
    if (after_layer) after_layer(l);
  }
}

// One block of the transformer. Touvron et al. 2023, LLaMA, with Qwen's biases and norms of q and k.
void Pipeline::layer(int l, const RowGroup& group, cudaStream_t stream) {
  const int n_rows = group.n_rows;
  const LayerWeights& layer = m_.layers[static_cast<size_t>(l)];
  norm(layer.attn_norm, layer.qkv, l - 1, n_rows, nullptr, stream);
  product({.name = "qkv", .weight = layer.qkv, .out_f32 = w_.qkv.data()}, n_rows, stream);
  timed("rope_store", 0, double(n_rows) * (h_.q_dim() + 2 * h_.kv_dim()) * 6, stream, [&] {
    rope_store({.qkv = w_.qkv.data(),
                .q_norm = layer.q_norm,
                .k_norm = layer.k_norm,
                .freq = m_.rope_freq,
                .magnitude = m_.rope_magnitude,
                .rows = {w_.pos.data(), w_.first_slot.data()},
                .q = w_.q.data(),
                .kv = kv_.arena(l),
                .n_tokens = n_rows,
                .n_head = h_.n_head,
                .n_head_kv = h_.n_head_kv,
                .head_dim = h_.head_dim,
                .n_rot = h_.n_rot,
                .eps = h_.rms_eps},
               stream);
  });
  attend(l, group, stream);
  product({.name = "o",
           .weight = layer.o,
           .x = w_.attended.data(),
           .epilogue = GemmEpilogue::kResidual,
           .out_f32 = w_.x.data()},
          n_rows, stream);

  norm(layer.ffn_norm, layer.gate_up, l, n_rows, nullptr, stream);
  product({.name = "gate_up",
           .weight = layer.gate_up,
           .epilogue = GemmEpilogue::kSwiglu,
           .out_f16 = w_.ffn.data(),
           .scale = kFfnScale},
          n_rows, stream);
  product({.name = "down",
           .weight = layer.down,
           .x = w_.ffn.data(),
           .epilogue = GemmEpilogue::kResidual,
           .out_f32 = w_.x.data(),
           .scale = 1.0f / kFfnScale},
          n_rows, stream);
}

void Pipeline::attend(int l, const RowGroup& group, cudaStream_t stream) {
  for (int t = 0; t < group.n_alone; t += kMaxDecodeRows) {
    attend_alone(l, t, std::min(kMaxDecodeRows, group.n_alone - t), group.n_splits, stream);
  }
  if (group.n_tiles == 0) return;
  // Two products over half of a square; exact for one sequence from position 0.
  const double n_rows = group.n_rows - group.n_alone;
  timed("flash_prefill", 2.0 * n_rows * n_rows * h_.q_dim(), 0, stream, [&] {
    flash_prefill({.q = w_.q.data(),
                   .kv = kv_.arena(l),
                   .out = w_.attended.data(),
                   .tiles = w_.tiles.data(),
                   .n_tiles = group.n_tiles,
                   .n_head = h_.n_head,
                   .n_head_kv = h_.n_head_kv,
                   .head_dim = h_.head_dim,
                   .scale = attention_scale(h_)},
                  stream);
  });
}

// Rows first .. first + n, one by one.
void Pipeline::attend_alone(int l, int first, int n, int n_splits, cudaStream_t stream) {
  const size_t row = size_t(first) * static_cast<size_t>(h_.q_dim());
  timed("flash_decode", 0, 0, stream, [&] {
    flash_decode({.q = w_.q.data() + row,
                  .kv = kv_.arena(l),
                  .rows = {w_.pos.data() + first, w_.first_slot.data() + first},
                  .out = w_.attended.data() + row,
                  .partials = w_.partials.data(),
                  .arrivals = w_.arrivals.data(),
                  .n_tokens = n,
                  .n_head = h_.n_head,
                  .n_head_kv = h_.n_head_kv,
                  .head_dim = h_.head_dim,
                  .scale = attention_scale(h_),
                  .n_splits = n_splits},
                 stream);
  });
}

// `layer_before` is the layer whose output the row still is, where it turns out not to be finite.
void Pipeline::norm(const float* weight, const FusedWeight& reader, int layer_before, int n_rows,
                    const int32_t* rows, cudaStream_t stream) {
  const bool f32 = gemm_wants_f32_a() && uses_gemm(reader, n_rows);
  timed("rmsnorm", 0, double(n_rows) * h_.n_embd * (f32 ? 8 : 6), stream, [&] {
    rmsnorm({.x = w_.x.data(),
             .weight = weight,
             .rows = rows,
             .out = f32 ? nullptr : w_.normed.data(),
             .out_f32 = f32 ? w_.normed_f32.data() : nullptr,
             .bad_layer = w_.bad_layer.data(),
             .layer = layer_before < 0 ? 0 : layer_before,
             .n_rows = n_rows,
             .n = h_.n_embd,
             .eps = h_.rms_eps},
            stream);
  });
}

// More rows than a matrix-vector product takes, and a f16 form of the matrix to be had. Without a resident
// cache the head has none: a scratch of its size would cost more than reading its blocks a few times.
bool Pipeline::uses_gemm(const FusedWeight& weight, int n_rows) const {
  const size_t n = size_t(weight.n_rows) * static_cast<size_t>(weight.n_cols);
  return n_rows > kGemvMaxRows && (weight.f16 != nullptr || w_.f16_scratch.size() >= n);
}

void Pipeline::product(const Product& p, int n_rows, cudaStream_t stream) {
  const double flops = 2.0 * n_rows * p.weight.n_rows * p.weight.n_cols;
  if (uses_gemm(p.weight, n_rows)) {
    const double f16_bytes = 2.0 * p.weight.n_rows * p.weight.n_cols;
    if (p.weight.f16 == nullptr) {
      timed("dequant", 0, packed_size(p.weight) + f16_bytes, stream,
            [&] { decode_fused(p.weight, w_.f16_scratch.data(), stream); });
    }
    timed(p.name, flops, f16_bytes, stream, [&] { product_gemm(p, n_rows, stream); });
    return;
  }
  for (int t = 0; t < n_rows; t += kGemvMaxRows) {
    const int n = std::min(kGemvMaxRows, n_rows - t);
    Product group = p;
    group.x = (p.x ? p.x : w_.normed.data()) + size_t(t) * static_cast<size_t>(p.weight.n_cols);
    group.out_f32 =
        p.out_f32 + size_t(t) * static_cast<size_t>(p.weight.n_rows);  // of more than one group: the head's
    timed(p.name, flops * n / n_rows, packed_size(p.weight), stream, [&] { product_gemv(group, n, stream); });
  }
}

void Pipeline::product_gemv(const Product& p, int n_rows, cudaStream_t stream) {
  GemvArgs args{
      .w = {},
      .n_matrices = p.weight.n_parts,
      .x = p.x ? p.x : w_.normed.data(),
      .n_tokens = n_rows,
      .epilogue = gemv_epilogue(p.epilogue),
      .bias = p.weight.bias,
      .out_f32 = p.out_f32,
      .out_f16 = p.out_f16,
      .scale = p.scale,
      // Nothing writes weights once they are loaded. Between a profiler's events it would gain nothing.
      .early = n_rows == 1 && profiler_ == nullptr};
  for (int i = 0; i < p.weight.n_parts; ++i) args.w[i] = p.weight.parts[i];
  const bool swiglu_apart = p.epilogue == GemmEpilogue::kSwiglu && args.w[0].type != args.w[1].type;
  if (swiglu_apart) {
    args.epilogue = GemvEpilogue::kStore;
    args.out_f32 = w_.qkv.data();  // q, k and v have been read
    args.out_f16 = nullptr;
    args.scale = 1.0f;
  }
  gemv(args, stream);
  if (!swiglu_apart) return;
  swiglu(
      {.gate_up = w_.qkv.data(), .out = p.out_f16, .n_rows = n_rows, .n = args.w[0].n_rows, .scale = p.scale},
      stream);
}

void Pipeline::product_gemm(const Product& p, int n_rows, cudaStream_t stream) {
  const bool f32 = p.x == nullptr && gemm_wants_f32_a();
  GemmArgs args{.a = f32   ? nullptr
                     : p.x ? p.x
                           : w_.normed.data(),
                .a_f32 = f32 ? w_.normed_f32.data() : nullptr,
                .b = p.weight.f16 ? p.weight.f16 : w_.f16_scratch.data(),
                .nt = n_rows,
                .od = p.weight.n_rows,
                .id = p.weight.n_cols,
                .epilogue = p.epilogue,
                .bias = p.weight.bias,
                .out_f32 = p.out_f32,
                .out_f16 = p.out_f16,
                .scale = p.scale,
                .split = {}};
  if (!f32 && n_rows <= kMaxGemmSplitRows) {
    args.split = {gemm_parts(args.od, args.id), w_.gemm_partials.data(), w_.gemm_arrivals.data()};
  }
  gemm(args, stream);
}

void Pipeline::head(int first, int n, cudaStream_t stream) {
  norm(m_.output_norm, m_.output, h_.n_layer - 1, n, w_.wanted.data() + first, stream);
  product({.name = "head", .weight = m_.output, .out_f32 = w_.logits.data()}, n, stream);
  timed("argmax", 0, double(n) * h_.n_vocab * sizeof(float), stream, [&] {
    argmax({.logits = w_.logits.data(),
            .out = w_.choices.data() + first,
            .n_rows = n,
            .n_vocab = h_.n_vocab,
            .n_vocab_used = n_vocab_used_,
            .scratch = w_.argmax_scratch.data()},
           stream);
  });
}

}  // namespace minfer::cu
