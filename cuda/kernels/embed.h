// Token embedding lookup from a table of any type.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "cuda/kernels/packed_matrix.h"

namespace minfer::cu {

struct EmbedArgs {
  PackedMatrix table;            // [n_vocab, n_embd]
  const int32_t* ids = nullptr;  // [n_tokens], each in [0, n_vocab): checked by the host
  float* out = nullptr;          // [n_tokens, n_embd]
  int n_tokens = 0;
};
// out[t] = table[ids[t]], bit for bit gguf::dequantizer's values.
void embed(const EmbedArgs& a, cudaStream_t stream);

}  // namespace minfer::cu
