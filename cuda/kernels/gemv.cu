// Which kernel multiplies: tiled matrices go to gemv_tiles.cu, those of one type (or of q4_K and q6_K) in one
// launch; any other makes it one launch (a pair for SwiGLU) of gemv_generic.cu. MINFER_GEMV_TILES=0: the
// latter.
#include "cuda/kernels/gemv.h"

#include "cuda/kernels/gemv_parts.h"
#include "cuda/runtime/align.h"
#include "cuda/runtime/check.h"
#include "cuda/runtime/switches.h"

namespace minfer::cu {
namespace {

void check_args(const GemvArgs& a) {
  MINFER_REQUIRE("gemv", a.n_tokens >= 1 && a.n_tokens <= kGemvMaxRows);
  MINFER_REQUIRE("gemv", a.n_matrices >= 1 && a.n_matrices <= 3);
  MINFER_REQUIRE("gemv", a.x != nullptr && aligned16(a.x));
  for (int m = 0; m < a.n_matrices; ++m) {
    MINFER_REQUIRE("gemv",
                   a.w[m].data != nullptr && aligned16(a.w[m].data) && a.w[m].n_cols == a.w[0].n_cols);
    MINFER_REQUIRE("gemv", packed_bytes(a.w[m].type, a.w[m].n_rows, a.w[m].n_cols) > 0);
  }
  if (a.epilogue == GemvEpilogue::kSwiglu) {
    MINFER_REQUIRE("gemv", a.n_matrices == 2 && a.out_f16 != nullptr);
    MINFER_REQUIRE("gemv", a.w[0].n_rows == a.w[1].n_rows && a.w[0].type == a.w[1].type);
  } else {
    MINFER_REQUIRE("gemv", a.out_f32 != nullptr);
    MINFER_REQUIRE("gemv", a.epilogue == GemvEpilogue::kStore || a.n_matrices == 1);
  }
  MINFER_REQUIRE("gemv", a.bias == nullptr || a.epilogue == GemvEpilogue::kStore);
  MINFER_REQUIRE("gemv", a.scale == 1.0f || a.epilogue != GemvEpilogue::kStore);
}

bool tiles_wanted() {
  static const bool wanted = switch_is_on("MINFER_GEMV_TILES", true);
  return wanted;
}

}  // namespace

void gemv(const GemvArgs& a, cudaStream_t stream) {
  check_args(a);
  const bool swiglu = a.epilogue == GemvEpilogue::kSwiglu;
  GemvOutput out{a.epilogue, a.bias, a.out_f32, a.out_f16, 0, a.scale};
  for (int m = 0; m < (swiglu ? 1 : a.n_matrices); ++m) out.row_stride += a.w[m].n_rows;
  if (tiles_wanted() && gemv_shares_launch(a)) {
    gemv_tiles(a, 0, out, stream);
  } else if (swiglu) {
    gemv_generic(a, a.w[0], a.w[1], 0, out, stream);
  } else {
    for (int m = 0, first = 0; m < a.n_matrices; first += a.w[m].n_rows, ++m) {
      GemvArgs one = a;
      one.n_matrices = 1, one.w[0] = a.w[m];
      if (tiles_wanted() && gemv_shares_launch(one)) {
        gemv_tiles(one, first, out, stream);
      } else {
        gemv_generic(a, a.w[m], PackedMatrix{}, first, out, stream);
      }
    }
  }
}

}  // namespace minfer::cu
