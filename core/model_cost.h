// What a model's forward pass has to compute and to read at least: the numbers that a speed is held against.
#pragma once

#include <cstdint>

#include "core/hparams.h"
#include "core/tensor_map.h"

namespace minfer {

struct Cost {
  double flops = 0;  // a multiply and an add count as two
  double bytes = 0;  // weights as they are in the file, keys and values, embedding rows
};

class ModelCost {
 public:
  // kv_token_bytes: of keys and values of all layers for one token, as the engine keeps them.
  ModelCost(const HParams& hparams, const ModelTensors& tensors, double kv_token_bytes);

  // n tokens of one sequence behind `depth` others, logits of the last one only.
  Cost prefill(int64_t n, int64_t depth) const;
  // One token for each of n_sequences, each behind `depth` others. Weights are read once.
  Cost decode_step(int64_t depth, int64_t n_sequences = 1) const;

  // The two products of attention in one layer, of n tokens behind `depth`: each sees itself and all before
  // it.
  double attention_flops(int64_t n, int64_t depth) const;
  // Keys and values of one layer that a decode step reads: `depth` tokens and its own.
  double attention_bytes(int64_t depth) const;

  double layer_weights() const { return layer_weights_; }             // matrix elements of all layers
  double weight_bytes() const { return layer_bytes_ + head_bytes_; }  // that a token passes: layers and head

 private:
  double n_layer_;
  double q_dim_;
  double kv_token_bytes_;
  double layer_weights_ = 0;  // elements
  double layer_bytes_ = 0;    // of all layers' tensors, vectors included
  double head_weights_ = 0;   // elements
  double head_bytes_ = 0;     // with the last norm
  double embedding_row_bytes_ = 0;
};

}  // namespace minfer
