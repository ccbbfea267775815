#include "cuda/kv_cache.h"

#include "core/error.h"
#include "tests/cuda/gpu.h"

namespace minfer::test {
namespace {

constexpr int kLayers = 2, kHeads = 3, kDim = 8, kSlots = 16;

HParams small() {
  HParams h;
  h.n_layer = kLayers;
  h.n_head = h.n_head_kv = kHeads;
  h.head_dim = kDim;
  return h;
}

// No two extents share a slot, and none leaves the arena.
void check_disjoint(const cu::KvCache& kv, const std::vector<SeqId>& ids) {
  std::vector<int> owners(kSlots, 0);
  for (const SeqId id : ids) {
    const auto& e = kv.extent(id);
    REQUIRE(e.first_slot >= 0);
    REQUIRE(e.first_slot + e.n_slots <= kSlots);
    for (int i = 0; i < e.n_slots; ++i) ++owners[size_t(e.first_slot + i)];
  }
  for (const int n : owners) CHECK(n <= 1);
}

}  // namespace

TEST_CASE("kv_cache: an empty extent gives nobody's slots away", "[cuda][kv_cache]") {
  MINFER_REQUIRE_GPU();
  cu::KvCache kv(small(), kSlots);
  const SeqId a = kv.reserve(5), empty = kv.reserve(0), b = kv.reserve(5), also_empty = kv.reserve(0),
              c = kv.reserve(6);
  check_disjoint(kv, {a, empty, b, also_empty, c});
  CHECK_THROWS_AS(kv.reserve(1), Error);
  kv.free(a);
  const SeqId d = kv.reserve(3), e = kv.reserve(2);
  check_disjoint(kv, {empty, b, also_empty, c, d, e});
  CHECK_THROWS_AS(kv.reserve(1), Error);
}

TEST_CASE("kv_cache: the first gap that is large enough; scattered slots are no room", "[cuda][kv_cache]") {
  MINFER_REQUIRE_GPU();
  cu::KvCache kv(small(), kSlots);
  const SeqId a = kv.reserve(4), b = kv.reserve(4), c = kv.reserve(4), d = kv.reserve(4);
  kv.free(a);
  kv.free(c);
  try {
    kv.reserve(5);
    FAIL("reserved");
  } catch (const Error& error) {
    CHECK(std::string(error.what()).find("needs 5 contiguous slots, 4 available") != std::string::npos);
  }
  CHECK(kv.extent(kv.reserve(3)).first_slot == 0);
  CHECK(kv.extent(kv.reserve(2)).first_slot == 8);  // one slot is left ahead of b
  kv.free(b);
  CHECK(kv.extent(kv.reserve(5)).first_slot == 3);
  CHECK_THROWS_AS(kv.extent(b), Error);
  CHECK_THROWS_AS(kv.reserve(-1), Error);
  CHECK(kv.has(d));
}

TEST_CASE("kv_cache: fits says whether reserve would find room, and takes none", "[cuda][kv_cache]") {
  MINFER_REQUIRE_GPU();
  cu::KvCache kv(small(), kSlots);
  std::vector<SeqId> ids;
  std::mt19937 rng(1);
  for (int step = 0; step < 500; ++step) {
    const auto n = static_cast<int32_t>(rng() % 7);
    const bool fits = kv.fits(n);
    CHECK(kv.fits(n) == fits);
    if (fits) {
      ids.push_back(kv.reserve(n));
    } else {
      CHECK_THROWS_AS(kv.reserve(n), Error);
      const size_t i = rng() % ids.size();
      kv.free(ids[i]);
      ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(i));
    }
    check_disjoint(kv, ids);
  }
  for (const SeqId id : ids) kv.free(id);
  CHECK(kv.fits(kSlots));
  CHECK_FALSE(kv.fits(kSlots + 1));
}

TEST_CASE("kv_cache: a copy takes every layer's and head's tokens along", "[cuda][kv_cache]") {
  MINFER_REQUIRE_GPU();
  cu::KvCache kv(small(), kSlots);
  const SeqId a = kv.reserve(6), b = kv.reserve(7);
  const size_t n = size_t{kHeads} * kSlots * kDim;
  std::vector<std::vector<half>> before;  // K, V of layer 0, K, V of layer 1
  for (int i = 0; i < 2 * kLayers; ++i) {
    before.push_back(to_half(random_normal(n, static_cast<uint32_t>(i + 1))));
    const auto arena = kv.arena(i / 2);
    cu::check(
        cudaMemcpy(i % 2 ? arena.v : arena.k, before.back().data(), n * sizeof(half), cudaMemcpyDefault),
        "upload");
  }
  kv.set_length(a, 5);
  const cu::Stream stream;
  cu::check(cudaDeviceSynchronize(), "upload");
  kv.copy(a, b, 4, stream.get());
  stream.synchronize("copy");
  CHECK(kv.extent(b).length == 4);
  CHECK(kv.extent(a).length == 5);
  const int from = kv.extent(a).first_slot, to = kv.extent(b).first_slot;
  int wrong = 0;
  for (int i = 0; i < 2 * kLayers; ++i) {
    std::vector<half> after(n);
    const auto arena = kv.arena(i / 2);
    cu::check(cudaMemcpy(after.data(), i % 2 ? arena.v : arena.k, n * sizeof(half), cudaMemcpyDefault),
              "download");
    for (int h = 0; h < kHeads; ++h) {
      for (int slot = 0; slot < kSlots; ++slot) {
        const int source = slot >= to && slot < to + 4 ? slot - to + from : slot;
        for (int d = 0; d < kDim; ++d) {
          wrong += to_float(after[(size_t(h) * kSlots + size_t(slot)) * kDim + size_t(d)]) !=
                   to_float(before[size_t(i)][(size_t(h) * kSlots + size_t(source)) * kDim + size_t(d)]);
        }
      }
    }
  }
  CHECK(wrong == 0);
  CHECK_THROWS_AS(kv.copy(a, b, 6, stream.get()), Error);  // more than there is
  kv.truncate(b, 1);
  CHECK(kv.extent(b).length == 1);
  CHECK_THROWS_AS(kv.truncate(b, 2), Error);
}

}  // namespace minfer::test
