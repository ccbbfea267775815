#include "cuda/kernels/dequant.h"

#include "core/error.h"
#include "tests/cuda/blocks.h"

namespace minfer::test {
namespace {

bool same_half(half got, float want) {
  const uint16_t bits = static_cast<__half_raw>(got).x, want_bits = gguf::f32_to_f16(want);
  const bool nan = (bits & 0x7fff) > 0x7c00, want_nan = (want_bits & 0x7fff) > 0x7c00;
  return nan || want_nan ? nan == want_nan : bits == want_bits;
}

// Number of elements that differ from the rounded CPU decoder's.
size_t count_wrong(const TestMatrix& m, const cu::RowOrder& order, int row_stride, int row_offset) {
  const int n_rows = m.matrix.n_rows, n_cols = m.matrix.n_cols;
  const size_t n_out =
      static_cast<size_t>(n_rows) * static_cast<size_t>(row_stride) * static_cast<size_t>(n_cols);
  constexpr size_t kGuard = 64;
  cu::DeviceBuffer<half> out(n_out + 2 * kGuard);
  out.fill_bytes(0xff);
  cu::dequant(
      {.in = m.matrix, .out = out.data() + kGuard, .row_stride = row_stride, .row_offset = row_offset},
      nullptr);
  std::vector<half> got(out.size());
  out.download(got);

  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> want(out.size(), nan);  // what nobody writes is the poison, a NaN
  for (int row = 0; row < n_rows; ++row) {
    const std::vector<float> values = decoded_row(m.matrix.type, m.blocks, row, n_cols);
    const size_t to = static_cast<size_t>(cu::reordered_row(order, row)) * static_cast<size_t>(row_stride) +
                      static_cast<size_t>(row_offset);
    std::copy(values.begin(), values.end(),
              want.begin() + static_cast<ptrdiff_t>(kGuard + to * static_cast<size_t>(n_cols)));
  }
  size_t wrong = 0;
  for (size_t i = 0; i < got.size(); ++i) wrong += !same_half(got[i], want[i]);
  return wrong;
}

TEST_CASE("dequant: every type is the CPU decoder's value, rounded", "[cuda][dequant]") {
  MINFER_REQUIRE_GPU();
  for (const TensorType type : kBlockTypes) {
    for (const bool special : {false, true}) {
      for (const auto& [n_rows, n_cols] : {std::pair{1, 256}, {7, 512}, {33, 3584}, {3, 18944}}) {
        INFO(gguf::type_info(type)->name << (special ? " special " : " ") << n_rows << " x " << n_cols);
        CHECK(count_wrong(TestMatrix(type, n_rows, n_cols, 11, special), {}, 1, 0) == 0);
      }
    }
  }
}

TEST_CASE("dequant: rows that are no multiple of 256", "[cuda][dequant]") {
  MINFER_REQUIRE_GPU();
  for (const TensorType type : kBlockTypes) {
    if (gguf::type_info(type)->block_size > 32) continue;
    for (const int n_cols : {32, 448, 576}) {
      INFO(gguf::type_info(type)->name << " " << n_cols);
      CHECK(count_wrong(TestMatrix(type, 5, n_cols, 12, true), {}, 1, 0) == 0);
    }
  }
}

TEST_CASE("dequant: reordered rows, and rows interleaved with another matrix's", "[cuda][dequant]") {
  MINFER_REQUIRE_GPU();
  const cu::RowOrder order{24, 16};
  for (const TensorType type : kBlockTypes) {
    INFO(gguf::type_info(type)->name);
    const TestMatrix m(type, 72, 256, 13, false, order);
    CHECK(count_wrong(m, order, 1, 0) == 0);
    CHECK(count_wrong(m, order, 2, 1) == 0);
  }
}

TEST_CASE("dequant: rejects an offset outside the stride", "[cuda][dequant]") {
  MINFER_REQUIRE_GPU();
  const TestMatrix m(TensorType::kQ4_0, 1, 32, 1);
  cu::DeviceBuffer<half> out(64);
  CHECK_THROWS_AS(cu::dequant({.in = m.matrix, .out = out.data(), .row_stride = 2, .row_offset = 2}, nullptr),
                  Error);
}

}  // namespace
}  // namespace minfer::test
