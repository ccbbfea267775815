// Packed blocks -> f16, the resident cache of the prefill GEMM.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include "cuda/kernels/packed_matrix.h"

namespace minfer::cu {

struct DequantArgs {
  PackedMatrix in;
  half* out = nullptr;  // row r of `in` goes to out + (r * row_stride + row_offset) * n_cols
  int row_stride = 1;   // 2 for gate (offset 0) and up (offset 1), which stand row by row
  int row_offset = 0;
};
// out = f16(decoder's f32 value), rounded to nearest; the f32 value is bit for bit gguf::dequantizer's.
void dequant(const DequantArgs& a, cudaStream_t stream);

}  // namespace minfer::cu
