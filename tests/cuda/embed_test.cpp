#include "cuda/kernels/embed.h"

#include "core/error.h"
#include "tests/cuda/blocks.h"

namespace minfer::test {
namespace {

size_t count_wrong(TensorType type, int n_vocab, int n_embd, const std::vector<int32_t>& ids, bool special) {
  const TestMatrix table(type, n_vocab, n_embd, 21, special);
  const cu::DeviceBuffer<int32_t> device_ids{std::span<const int32_t>(ids)};
  constexpr size_t kGuard = 64;
  const size_t row = static_cast<size_t>(n_embd);
  cu::DeviceBuffer<float> out(ids.size() * row + 2 * kGuard);
  out.fill_bytes(0xff);
  cu::embed({.table = table.matrix,
             .ids = device_ids.data(),
             .out = out.data() + kGuard,
             .n_tokens = static_cast<int>(ids.size())},
            nullptr);
  std::vector<float> got(out.size());
  out.download(got);
  size_t wrong = 0;
  for (size_t i = 0; i < kGuard; ++i) wrong += !std::isnan(got[i]) + !std::isnan(got[got.size() - 1 - i]);
  for (size_t t = 0; t < ids.size(); ++t) {
    const std::vector<float> want = decoded_row(type, table.blocks, ids[t], n_embd);
    for (size_t i = 0; i < row; ++i) {
      const float value = got[kGuard + t * row + i];
      wrong += std::isnan(want[i]) ? !std::isnan(value) : std::memcmp(&value, &want[i], 4) != 0;
    }
  }
  return wrong;
}

TEST_CASE("embed: bit for bit the CPU decoder's rows, from every type", "[cuda][embed]") {
  MINFER_REQUIRE_GPU();
  for (const TensorType type : kBlockTypes) {
    for (const bool special : {false, true}) {
      INFO(gguf::type_info(type)->name << (special ? " special" : ""));
      CHECK(count_wrong(type, 1, 256, {0}, special) == 0);
      CHECK(count_wrong(type, 301, 3584, {300, 0, 17, 17, 299, 5}, special) == 0);
      if (gguf::type_info(type)->block_size <= 32)
        CHECK(count_wrong(type, 40, 576, {39, 1, 0}, special) == 0);
    }
  }
}

TEST_CASE("embed: rejects an empty batch", "[cuda][embed]") {
  MINFER_REQUIRE_GPU();
  const TestMatrix table(TensorType::kQ4_0, 4, 32, 1);
  cu::DeviceBuffer<float> out(32);
  cu::DeviceBuffer<int32_t> ids(1);
  CHECK_THROWS_AS(
      cu::embed({.table = table.matrix, .ids = ids.data(), .out = out.data(), .n_tokens = 0}, nullptr),
      Error);
}

}  // namespace
}  // namespace minfer::test
