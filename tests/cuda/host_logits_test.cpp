#include "cuda/host_logits.h"

#include "tests/cuda/gpu.h"

using namespace minfer;

TEST_CASE("host_logits: the wanted rows of every group, each where it was said to be",
          "[cuda][host_logits]") {
  MINFER_REQUIRE_GPU();
  constexpr int32_t kVocab = 37;
  cu::HostLogits host(kVocab);
  const cu::Stream stream;
  const std::vector<std::vector<bool>> groups = {
      {true}, {false, false}, {true, true, true}, {false, true, true, false, true}, {true, false}, {}};
  for (int pass = 0; pass < 3; ++pass) {
    host.begin_pass();
    std::vector<std::vector<float>> truth;
    std::vector<std::vector<std::span<const float>>> rows;
    for (size_t g = 0; g < groups.size(); ++g) {
      // Each pass begins with another group: buffers have to grow.
      const std::vector<bool>& wanted = groups[(g + static_cast<size_t>(pass)) % groups.size()];
      truth.push_back(test::random_normal(wanted.size() * kVocab,
                                          static_cast<uint32_t>(10 * pass) + static_cast<uint32_t>(g)));
      const cu::DeviceBuffer<float> logits{std::span<const float>(truth.back())};
      rows.push_back(host.fetch(logits.data(), wanted, stream.get()));
      stream.synchronize("logits");
      REQUIRE(rows.back().size() == wanted.size());
    }
    for (size_t g = 0; g < groups.size(); ++g) {
      const std::vector<bool>& wanted = groups[(g + static_cast<size_t>(pass)) % groups.size()];
      for (size_t i = 0; i < wanted.size(); ++i) {
        CAPTURE(pass, g, i);
        if (!wanted[i]) {
          CHECK(rows[g][i].empty());
          continue;
        }
        const auto want = std::span(truth[g]).subspan(i * kVocab, kVocab);
        CHECK(std::equal(rows[g][i].begin(), rows[g][i].end(), want.begin(), want.end()));
      }
    }
  }
}
