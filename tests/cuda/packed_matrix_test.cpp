#include "cuda/kernels/packed_matrix.h"

#include <set>

#include "core/error.h"
#include "tests/cuda/blocks.h"

namespace minfer::test {
namespace {

using cu::packed_bytes;
using cu::RowOrder;

TEST_CASE("packed_matrix: reordering makes NEOX pairs adjacent and is a permutation",
          "[cuda][packed_matrix]") {
  for (const RowOrder order :
       {RowOrder{64, 64}, RowOrder{128, 64}, RowOrder{96, 96}, RowOrder{8, 0}, RowOrder{}}) {
    const int head = order.head_dim == 0 ? 16 : order.head_dim;
    std::set<int> seen;
    for (int row = 0; row < 3 * head; ++row) {
      const int to = cu::reordered_row(order, row);
      CHECK(to / head == row / head);
      seen.insert(to);
      const int i = row % head;
      if (order.head_dim > 0 && i < order.n_rot / 2) {
        CHECK(to % head == 2 * i);
        CHECK(cu::reordered_row(order, row + order.n_rot / 2) == to + 1);
      } else if (i >= order.n_rot || order.head_dim == 0) {
        CHECK(to == row);
      }
    }
    CHECK(seen.size() == static_cast<size_t>(3 * head));
  }
}

TEST_CASE("packed_matrix: the size is the file's, rows of tiled types rounded up", "[cuda][packed_matrix]") {
  for (const TensorType type : kBlockTypes) {
    const gguf::TypeInfo& info = *gguf::type_info(type);
    CHECK(packed_bytes(type, 3584, 18944) == size_t{3584} * 18944 / info.block_size * info.block_bytes);
    CHECK(packed_bytes(type, 1, 256) >= 256 / info.block_size * info.block_bytes);
  }
  CHECK(packed_bytes(TensorType::kQ4_K, 17, 256) == 32 * 144);
  CHECK_THROWS_AS(packed_bytes(TensorType::kQ4_K, 16, 128), Error);
  CHECK_THROWS_AS(packed_bytes(TensorType::kF32, 16, 12), Error);
  CHECK_THROWS_AS(packed_bytes(TensorType::kQ8_K, 16, 256), Error);
  CHECK_THROWS_AS(packed_bytes(TensorType::kQ4_K, 0, 256), Error);
}

TEST_CASE("packed_matrix: pieces of any size give the bytes of one call", "[cuda][packed_matrix]") {
  MINFER_REQUIRE_GPU();
  const int n_rows = 72, n_cols = 512;
  for (const TensorType type : kBlockTypes) {
    for (const RowOrder order : {RowOrder{}, RowOrder{24, 16}}) {
      const TestMatrix whole(type, n_rows, n_cols, 5, false, order);
      const size_t row_bytes = whole.blocks.size() / n_rows;
      cu::DeviceBuffer<std::byte> out(packed_bytes(type, n_rows, n_cols));
      out.fill_bytes(0xff);
      for (int first = 0, n = 1; first < n_rows; first += n, n = std::min(n + 6, n_rows - first)) {
        const std::vector<std::byte> rows(
            whole.blocks.begin() + static_cast<ptrdiff_t>(row_bytes) * first,
            whole.blocks.begin() + static_cast<ptrdiff_t>(row_bytes) * (first + n));
        const cu::DeviceBuffer<std::byte> piece{std::span<const std::byte>(rows)};
        cu::pack({.file_blocks = piece.data(),
                  .out = {out.data(), type, n_rows, n_cols},
                  .out_data = out.data(),
                  .first_row = first,
                  .n_rows = n,
                  .order = order},
                 nullptr);
        cu::check(cudaDeviceSynchronize(), "pack");
      }
      std::vector<std::byte> got(out.size()), want(whole.packed.size());
      out.download(got);
      whole.packed.download(want);
      INFO(gguf::type_info(type)->name);
      CHECK(got == want);
    }
  }
}

TEST_CASE("packed_matrix: rejects rows outside the matrix", "[cuda][packed_matrix]") {
  MINFER_REQUIRE_GPU();
  cu::DeviceBuffer<std::byte> bytes(16 * 144);
  cu::PackArgs args{.file_blocks = bytes.data(),
                    .out = {bytes.data(), TensorType::kQ4_K, 16, 256},
                    .out_data = bytes.data(),
                    .first_row = 10,
                    .n_rows = 7,
                    .order = {}};
  CHECK_THROWS_AS(cu::pack(args, nullptr), Error);
  args.first_row = 0, args.n_rows = 16, args.order = {12, 4};
  CHECK_THROWS_AS(cu::pack(args, nullptr), Error);
}

}  // namespace
}  // namespace minfer::test
