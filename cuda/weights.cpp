#include "cuda/weights.h"

#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "core/error.h"
#include "core/rope_frequencies.h"
#include "cuda/kernels/dequant.h"
#include "cuda/runtime/stream.h"
#include "cuda/uploader.h"
#include "gguf/dequantize.h"

namespace minfer::cu {
namespace {

std::vector<float> decode(const gguf::Tensor& tensor) {
  std::vector<float> values(tensor.n_elements());
  gguf::dequantizer(tensor.type)(tensor.data.data(), values.data(), values.size());
  return values;
}

// The rows of a q or k, and so its bias and norm, in the order that puts rotated pairs side by side.
std::vector<float> reorder(const std::vector<float>& values, const RowOrder& order) {
  std::vector<float> out(values.size());
  for (size_t i = 0; i < values.size(); ++i)
    out[static_cast<size_t>(reordered_row(order, static_cast<int>(i)))] = values[i];
  return out;
}

void refuse_bias(const gguf::Tensor* bias) {
  if (bias == nullptr) return;
  throw Error(
      ExitCode::kModelFile,
      fmt::format("tensor {}: the CUDA engine knows biases of q, k and v only; --device cpu runs this model",
                  bias->name));
}

// A bar on stderr, redrawn in place.
void draw_progress(uint64_t done, uint64_t total) {
  constexpr int kWidth = 40;
  const int filled = static_cast<int>(kWidth * done / std::max<uint64_t>(total, 1));
  const std::string bar =
      std::string(static_cast<size_t>(filled), '#') + std::string(static_cast<size_t>(kWidth - filled), '.');
  std::fprintf(stderr, "\rloading [%s] %3d %%%s", bar.c_str(),
               static_cast<int>(100 * done / std::max<uint64_t>(total, 1)), done == total ? "\r\033[K" : "");
}

}  // namespace

// Lays everything out first (offsets), allocates, then uploads and decodes.
class Weights::Builder {
 public:
  Builder(Weights& weights, const HParams& h, const MemoryPlan& plan) : w_(weights), h_(h), plan_(plan) {}

  void build(const ModelTensors& t, bool progress) {
    w_.blocks_ = DeviceBuffer<std::byte>(plan_.blocks);
    w_.f16_ = DeviceBuffer<half>(plan_.f16_cache / sizeof(half));  // empty where the cache is off
    lay_out(t);
    MINFER_REQUIRE("weights", blocks_used_ <= w_.blocks_.size() && f16_used_ <= w_.f16_.size());
    w_.vectors_ = DeviceBuffer<float>(std::span<const float>(host_vectors_));
    for (const auto& [field, offset] : vector_fields_) *field = w_.vectors_.data() + offset;
    uint64_t total = 0;
    for (const Upload& u : uploads_) total += u.blocks.size();
    const bool draw = progress && isatty(STDERR_FILENO);
    upload_all(uploads_, draw ? [total](uint64_t done) { draw_progress(done, total); }
                              : std::function<void(uint64_t)>());
    if (plan_.use_f16_cache) decode_all();
  }

 private:
  void lay_out(const ModelTensors& t) {
    Model& m = w_.model_;
    m.layers.resize(t.layers.size());  // never again: vector_fields_ points into it
    for (size_t l = 0; l < t.layers.size(); ++l) lay_out_layer(t.layers[l], m.layers[l]);
    m.output_norm = nullptr;
    add_vector(&m.output_norm, decode(*t.output_norm));
    refuse_bias(t.output_bias);
    fuse(m.output, {t.output});
    m.token_embd = t.token_embd == t.output ? m.output.parts[0] : add_matrix(*t.token_embd, {});
    const auto frequencies =
        rope_frequencies(h_, t.rope_freqs ? decode(*t.rope_freqs) : std::vector<float>());
    w_.rope_freq_ = DeviceBuffer<double>(std::span<const double>(frequencies.radians));
    m.rope_freq = w_.rope_freq_.data();
    m.rope_magnitude = static_cast<float>(frequencies.magnitude);
  }

  void lay_out_layer(const LayerTensors& t, LayerWeights& layer) {
    const RowOrder pairs =
        h_.rope_pairing == RopePairing::kNeox ? RowOrder{h_.head_dim, h_.n_rot} : RowOrder{};
    add_vector(&layer.attn_norm, decode(*t.attn_norm));
    fuse(layer.qkv, {t.attn_q, t.attn_k, t.attn_v}, pairs);
    if (t.attn_q_bias || t.attn_k_bias || t.attn_v_bias) add_vector(&layer.qkv.bias, qkv_bias(t, pairs));
    if (t.attn_q_norm) add_vector(&layer.q_norm, reorder(decode(*t.attn_q_norm), pairs));
    if (t.attn_k_norm) add_vector(&layer.k_norm, reorder(decode(*t.attn_k_norm), pairs));
    fuse(layer.o, {t.attn_output});
    add_vector(&layer.ffn_norm, decode(*t.ffn_norm));
    fuse(layer.gate_up, {t.ffn_gate, t.ffn_up});
    layer.gate_up.interleaved = true;
    fuse(layer.down, {t.ffn_down});
    for (const gguf::Tensor* bias : {t.attn_output_bias, t.ffn_gate_bias, t.ffn_up_bias, t.ffn_down_bias})
      refuse_bias(bias);
  }

  std::vector<float> qkv_bias(const LayerTensors& t, const RowOrder& pairs) {
    std::vector<float> bias;
    const auto append = [&](const gguf::Tensor* tensor, int n, const RowOrder& order) {
      const std::vector<float> part =
          tensor ? reorder(decode(*tensor), order) : std::vector<float>(static_cast<size_t>(n));
      bias.insert(bias.end(), part.begin(), part.end());
    };
    append(t.attn_q_bias, h_.q_dim(), pairs);
    append(t.attn_k_bias, h_.kv_dim(), pairs);
    append(t.attn_v_bias, h_.kv_dim(), {});
    return bias;
  }

  // The rows of `order` are those of all parts but the third: q and k are rotated, v is not.
  void fuse(FusedWeight& weight, std::initializer_list<const gguf::Tensor*> parts,
            const RowOrder& order = {}) {
    for (const gguf::Tensor* tensor : parts) {
      weight.parts[weight.n_parts] = add_matrix(*tensor, weight.n_parts < 2 ? order : RowOrder{});
      weight.n_cols = weight.parts[weight.n_parts].n_cols;
      weight.n_rows += weight.parts[weight.n_parts].n_rows;
      ++weight.n_parts;
    }
    const size_t n = size_t(weight.n_rows) * static_cast<size_t>(weight.n_cols);
    if (plan_.use_f16_cache) {
      weight.f16 = w_.f16_.data() + f16_used_;
      f16_used_ += padded(n * sizeof(half)) / sizeof(half);
      fused_.push_back(&weight);
    } else if (&weight != &w_.model_.output) {
      w_.scratch_elements_ = std::max(w_.scratch_elements_, n);
    }
  }

  PackedMatrix add_matrix(const gguf::Tensor& tensor, const RowOrder& order) {
    const int n_rows = static_cast<int>(tensor.dims[1]), n_cols = static_cast<int>(tensor.dims[0]);
    void* data = w_.blocks_.data() + blocks_used_;
    blocks_used_ += padded(packed_bytes(tensor.type, n_rows, n_cols));
    const PackedMatrix matrix{.data = data, .type = tensor.type, .n_rows = n_rows, .n_cols = n_cols};
    uploads_.push_back({.blocks = tensor.data, .out = matrix, .out_data = data, .order = order});
    return matrix;
  }

  void add_vector(const float** field, const std::vector<float>& values) {
    vector_fields_.emplace_back(field, host_vectors_.size());
    host_vectors_.insert(host_vectors_.end(), values.begin(), values.end());
    host_vectors_.resize(padded(host_vectors_.size() * sizeof(float)) / sizeof(float));
  }

  void decode_all() {
    Stream stream;
    for (const FusedWeight* weight : fused_)
      decode_fused(*weight, const_cast<half*>(weight->f16), stream.get());
    stream.synchronize("dequant");
  }

  Weights& w_;
  const HParams& h_;
  const MemoryPlan& plan_;
  std::vector<Upload> uploads_;
  std::vector<FusedWeight*> fused_;
  std::vector<float> host_vectors_;
  std::vector<std::pair<const float**, size_t>> vector_fields_;
  size_t blocks_used_ = 0;
  size_t f16_used_ = 0;
};

Weights::Weights(const HParams& hparams, const ModelTensors& tensors, const MemoryPlan& plan, bool progress) {
  Builder(*this, hparams, plan).build(tensors, progress);
}

void decode_fused(const FusedWeight& weight, half* out, cudaStream_t stream) {
  int first_row = 0;
  for (int i = 0; i < weight.n_parts; ++i) {
    dequant({.in = weight.parts[i],
             .out = out + (weight.interleaved ? 0 : size_t(first_row) * static_cast<size_t>(weight.n_cols)),
             .row_stride = weight.interleaved ? weight.n_parts : 1,
             .row_offset = weight.interleaved ? i : 0},
            stream);
    first_row += weight.parts[i].n_rows;
  }
}

}  // namespace minfer::cu
