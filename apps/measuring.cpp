#include "apps/measuring.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdlib>

#include "cuda/ceilings.h"

namespace minfer {
namespace {

// By a long extent: engines round short ones up.
double kv_token_bytes(const Engine& engine) {
  constexpr int32_t kTokens = 4096;
  return static_cast<double>(engine.kv_bytes(kTokens)) / kTokens;
}

}  // namespace

Measured::Measured(const Device& device, const Options& options, int32_t n_kv_tokens, int64_t longest)
    : file(gguf::Reader::open(options.model)),
      tokenizer(Tokenizer::from_metadata(file.metadata(), {.pretokenizer = options.pretokenizer})),
      hparams(HParams::read(file)),
      ceilings(device.is_cuda ? cu::measure_ceilings() : Ceilings{.described = "n/a on the CPU"}),
      engine(make_engine(device, options, file, *tokenizer, n_kv_tokens)),
      cost(hparams, ModelTensors::read(file, hparams), kv_token_bytes(*engine)),
      n_vocab(std::min(hparams.n_vocab, tokenizer->n_vocab())) {
  if (longest > hparams.n_ctx_train) {
    spdlog::warn("{} tokens: the model was trained with a context of {}", longest, hparams.n_ctx_train);
  }
#ifndef NDEBUG
  spdlog::warn("this is a debug build: its figures say nothing about speed");
#endif
}

std::string switches_in_use() {
  std::string out;
  for (const char* name :
       {"MINFER_GEMM_AF32", "MINFER_GEMM_KS", "MINFER_GEMM_TM", "MINFER_GEMV_TILES", "MINFER_GEMV_WARPS",
        "MINFER_GRAPH", "MINFER_ISA", "MINFER_SMEM_LIMIT", "MINFER_SYNC"}) {
    if (const char* value = std::getenv(name))
      out += std::string(out.empty() ? "" : " ") + name + "=" + value;
  }
  return out;
}

}  // namespace minfer
