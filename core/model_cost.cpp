#include "core/model_cost.h"

namespace minfer {
namespace {

double bytes_of(const gguf::Tensor* t) {
  return t == nullptr ? 0.0 : static_cast<double>(t->data.size());
}

double elements_of(const gguf::Tensor* t) {
  return static_cast<double>(t->n_elements());
}

}  // namespace

ModelCost::ModelCost(const HParams& h, const ModelTensors& t, double kv_token_bytes)
    : n_layer_(h.n_layer), q_dim_(h.q_dim()), kv_token_bytes_(kv_token_bytes) {
  for (const LayerTensors& l : t.layers) {
    for (const gguf::Tensor* matrix :
         {l.attn_q, l.attn_k, l.attn_v, l.attn_output, l.ffn_gate, l.ffn_up, l.ffn_down}) {
      layer_weights_ += elements_of(matrix);
      layer_bytes_ += bytes_of(matrix);
    }
    for (const gguf::Tensor* vector :
         {l.attn_norm, l.attn_q_bias, l.attn_k_bias, l.attn_v_bias, l.attn_q_norm, l.attn_k_norm,
          l.attn_output_bias, l.ffn_norm, l.ffn_gate_bias, l.ffn_up_bias, l.ffn_down_bias}) {
      layer_bytes_ += bytes_of(vector);
    }
  }
  head_weights_ = elements_of(t.output);
  head_bytes_ = bytes_of(t.output) + bytes_of(t.output_norm) + bytes_of(t.output_bias);
  embedding_row_bytes_ = static_cast<double>(t.token_embd->row_bytes());
}

double ModelCost::attention_flops(int64_t n, int64_t depth) const {
  const auto tokens = static_cast<double>(n);
  const double pairs = tokens * static_cast<double>(depth) + tokens * (tokens + 1) / 2;  // of query and key
  return 4 * q_dim_ * pairs;  // q.k and p.v, two flops each
}

double ModelCost::attention_bytes(int64_t depth) const {
  return static_cast<double>(depth + 1) * kv_token_bytes_ / n_layer_;
}

Cost ModelCost::prefill(int64_t n, int64_t depth) const {
  const auto tokens = static_cast<double>(n);
  return {.flops = 2 * tokens * layer_weights_ + n_layer_ * attention_flops(n, depth) + 2 * head_weights_,
          .bytes = weight_bytes() + tokens * embedding_row_bytes_ +
                   static_cast<double>(depth + n) * kv_token_bytes_};
}

Cost ModelCost::decode_step(int64_t depth, int64_t n_sequences) const {
  const auto sequences = static_cast<double>(n_sequences);
  return {.flops = sequences * (2 * (layer_weights_ + head_weights_) + n_layer_ * attention_flops(1, depth)),
          .bytes = weight_bytes() + sequences * (embedding_row_bytes_ + n_layer_ * attention_bytes(depth))};
}

}  // namespace minfer
