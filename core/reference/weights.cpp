#include "core/reference/weights.h"

#include <spdlog/fmt/fmt.h>

#include <cmath>

#include "core/error.h"

namespace minfer {
namespace {

std::vector<float> decode_vector(const gguf::Tensor* tensor) {
  if (!tensor) return {};
  std::vector<float> values(tensor->dims[0]);
  gguf::dequantizer(tensor->type)(tensor->data.data(), values.data(), values.size());
  return values;
}

Linear make_linear(const gguf::Tensor* weight, const gguf::Tensor* bias) {
  return {.blocks = weight->data.data(),
          .row_bytes = weight->row_bytes(),
          .n_rows = static_cast<int32_t>(weight->dims[1]),
          .n_cols = static_cast<int32_t>(weight->dims[0]),
          .decode = gguf::dequantizer(weight->type),
          .bias = decode_vector(bias)};
}

LayerWeights make_layer(const LayerTensors& t) {
  return {.attn_norm = decode_vector(t.attn_norm),
          .q = make_linear(t.attn_q, t.attn_q_bias),
          .k = make_linear(t.attn_k, t.attn_k_bias),
          .v = make_linear(t.attn_v, t.attn_v_bias),
          .o = make_linear(t.attn_output, t.attn_output_bias),
          .q_norm = decode_vector(t.attn_q_norm),
          .k_norm = decode_vector(t.attn_k_norm),
          .ffn_norm = decode_vector(t.ffn_norm),
          .gate = make_linear(t.ffn_gate, t.ffn_gate_bias),
          .up = make_linear(t.ffn_up, t.ffn_up_bias),
          .down = make_linear(t.ffn_down, t.ffn_down_bias)};
}

}  // namespace

ModelWeights ModelWeights::load(const gguf::Reader& file, const HParams& h) {
  const ModelTensors t = ModelTensors::read(file, h);
  ModelWeights w;
  w.token_embd = make_linear(t.token_embd, nullptr);
  for (const LayerTensors& layer : t.layers) w.layers.push_back(make_layer(layer));
  w.output_norm = decode_vector(t.output_norm);
  w.output = make_linear(t.output, t.output_bias);
  w.rope_factors = decode_vector(t.rope_freqs);
  for (const float factor : w.rope_factors) {
    if (!(factor > 0) || !std::isfinite(factor)) {
      throw Error(ExitCode::kModelFile,
                  fmt::format("{}: tensor {} holds {}, needs positive numbers", gguf::printable(file.name()),
                              t.rope_freqs->name, factor));
    }
  }
  return w;
}

}  // namespace minfer
