// What the measuring modes share: the model, what its work costs, and the machine that it is held against.
#pragma once

#include <memory>
#include <string>

#include "apps/device.h"
#include "apps/options.h"
#include "core/ceilings.h"
#include "core/model_cost.h"

namespace minfer {

struct Measured {
  // Loads the model with KV for n_kv_tokens of all sequences together; warns where the longest one passes the
  // trained context, and where this build is slow.
  Measured(const Device& device, const Options& options, int32_t n_kv_tokens, int64_t longest);
  Measured(const Measured&) = delete;
  Measured& operator=(const Measured&) = delete;

  gguf::Reader file;
  std::unique_ptr<Tokenizer> tokenizer;
  HParams hparams;
  Ceilings ceilings;  // unknown on the CPU; measured while the card's memory is still free
  std::unique_ptr<Engine> engine;
  ModelCost cost;
  int32_t n_vocab;  // ids below it are tokens and have rows in the model
};

// "MINFER_GEMM_TM=64 MINFER_GRAPH=0": the switches that are set for this run; empty where none is.
std::string switches_in_use();

}  // namespace minfer
