// A quantized weight matrix as it lies in device memory: the file's blocks, or a repacked form of the same
// bits that decode reads faster. The one copy that matrix-vector products, embedding lookup and `--f16-cache
// off` share.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "gguf/blocks.h"

namespace minfer::cu {

// q4_K and q6_K lie in tiles of 16 rows x 256 columns, q4_0, q4_1, q5_0 and q8_0 in ones of 16 rows x 64
// columns where n_cols is a multiple of 64 (cuda/device/quant_tiles.h); anything else as in the file.
struct PackedMatrix {
  const void* data = nullptr;  // packed_bytes(type, n_rows, n_cols) bytes, 256-byte aligned
  gguf::TensorType type = gguf::TensorType::kF32;
  int n_rows = 0, n_cols = 0;  // n_cols: whole blocks, and a multiple of 8 (a lane decodes 8 values)
};

// Where a row of the file goes. RoPE's NEOX pairing rotates (i, i + n_rot/2) of a head; with the rows of q
// and k reordered so that such a pair is adjacent, q.k does not change and RoPE is the same everywhere.
struct RowOrder {
  int head_dim = 0;  // 0: rows stay where they are
  int n_rot = 0;     // within a head, row i < n_rot/2 goes to 2i and row i + n_rot/2 to 2i + 1; the rest stay
};
int reordered_row(const RowOrder& order, int row);

bool is_tiled(gguf::TensorType type, int n_cols);

// The file's size; of tiled matrices with n_rows rounded up to 16. Throws for a type that minfer does not
// support, and for rows that are not whole blocks or not a multiple of 8.
size_t packed_bytes(gguf::TensorType type, int n_rows, int n_cols);

// Packs rows [first_row, first_row + n_rows) of the matrix, given as the file has them in device memory
// (`file_blocks` points at the first of these rows), into `out`. Any division of a matrix into calls gives
// the same bytes; the call that has the last row also writes the rows that fill up the last tile.
struct PackArgs {
  const void* file_blocks = nullptr;  // [n_rows, n_cols] blocks, 16-byte aligned
  PackedMatrix out;
  void* out_data = nullptr;  // = out.data, writable
  int first_row = 0, n_rows = 0;
  RowOrder order;
};
void pack(const PackArgs& a, cudaStream_t stream);

}  // namespace minfer::cu
