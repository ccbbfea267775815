// Tensor core products of one warp (sm_80 on).
#pragma once

#include <cstdint>

namespace minfer::cu {

// C[16, 8] += A[16, 16] * B[16, 8], f16 operands, f32 sums. With g = lane / 4 and p = 2 (lane % 4), a lane
// holds
//   a[0] A(g, p..p+1)   a[1] A(g + 8, p..)   a[2] A(g, p + 8..)   a[3] A(g + 8, p + 8..)
//   b[0] B(p..p+1, g)   b[1] B(p + 8.., g)
//   c[0], c[1] C(g, p..p+1)   c[2], c[3] C(g + 8, p..p+1)
// so ldmatrix_x4 loads a whole A from rows of A, and two (n, n + 8) or one B from rows of B^T.
__device__ __forceinline__ void mma_m16n8k16(float (&c)[4], const uint32_t (&a)[4], uint32_t b0,
                                             uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

}  // namespace minfer::cu
