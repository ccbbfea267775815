// The plan is arithmetic: no card is needed.
#include "cuda/memory_plan.h"

#include "core/error.h"
#include "cuda/kv_cache.h"
#include "gguf/reader.h"
#include "tests/support/catch.h"
#include "tests/support/tiny_model.h"

using namespace minfer;
using namespace minfer::test;

namespace {

std::vector<std::byte> model_bytes() {
  TinyModel model;
  model.n_embd = 128;
  model.head_dim = 64;
  return tiny_model(model);
}

// Plans of one tiny model for cards with so much memory free.
class Planner {
 public:
  cu::MemoryPlan plan(const cu::CudaOptions& options, uint64_t free_bytes) const {
    return cu::plan_memory(h_, tensors_, options, free_bytes);
  }
  uint64_t kv_bytes(int64_t n_tokens) const { return cu::KvCache::bytes(h_, n_tokens); }

 private:
  std::vector<std::byte> bytes_ = model_bytes();
  gguf::Reader file_ = gguf::Reader::from_bytes(bytes_);
  HParams h_ = HParams::read(file_);
  ModelTensors tensors_ = ModelTensors::read(file_, h_);
};

constexpr uint64_t kPlenty = uint64_t{64} << 30;
constexpr int32_t kMany = 4'000'000, kFew = 1'000'000;  // KV tokens: 4 GB and 1 GB of this model

// Free bytes with which a plan for options just fits.
uint64_t just_enough(const Planner& planner, const cu::CudaOptions& options) {
  uint64_t low = 0, high = kPlenty;
  while (low + 1 < high) {
    const uint64_t middle = low + (high - low) / 2;
    try {
      planner.plan(options, middle);
      high = middle;
    } catch (const Error&) {
      low = middle;
    }
  }
  return high;
}

}  // namespace

TEST_CASE("memory_plan: as many KV slots as were asked for, where they fit", "[cuda][memory_plan]") {
  const Planner planner;
  for (const int32_t least : {0, 1, kFew, kMany, kMany + 1}) {
    CAPTURE(least);
    const auto plan = planner.plan({.n_kv_tokens = kMany, .n_kv_tokens_least = least}, kPlenty);
    CHECK(plan.n_kv_tokens == kMany);
    CHECK(plan.kv == planner.kv_bytes(kMany));
    CHECK(plan.use_f16_cache);
  }
}

TEST_CASE("memory_plan: without a least number, one byte too little is refused", "[cuda][memory_plan]") {
  const Planner planner;
  const cu::CudaOptions options{.n_kv_tokens = kMany, .f16_cache = cu::F16Cache::kOn};
  const uint64_t enough = just_enough(planner, options);
  CHECK(planner.plan(options, enough).n_kv_tokens == kMany);
  CHECK_THROWS_AS(planner.plan(options, enough - 1), Error);
}

TEST_CASE("memory_plan: KV slots beyond the least take what is left, to the last one",
          "[cuda][memory_plan]") {
  const Planner planner;
  for (const auto cache : {cu::F16Cache::kOn, cu::F16Cache::kOff}) {
    const uint64_t enough = just_enough(planner, {.n_kv_tokens = kMany, .f16_cache = cache});
    const cu::CudaOptions options{.n_kv_tokens = kMany, .n_kv_tokens_least = kFew, .f16_cache = cache};
    CHECK(planner.plan(options, enough).n_kv_tokens == kMany);
    CHECK(planner.plan(options, enough - 1).n_kv_tokens == kMany - 1);
    CHECK(planner.plan(options, enough - planner.kv_bytes(7)).n_kv_tokens == kMany - 7);
    CHECK(planner.plan(options, enough - planner.kv_bytes(7) - 1).n_kv_tokens == kMany - 8);
    const uint64_t least = enough - planner.kv_bytes(kMany - kFew);
    CHECK(planner.plan(options, least).n_kv_tokens == kFew);
    CHECK_THROWS_AS(planner.plan(options, least - 1), Error);
  }
}

TEST_CASE("memory_plan: the f16 cache goes ahead of KV slots beyond the least", "[cuda][memory_plan]") {
  const Planner planner;
  const uint64_t least_with_cache =
      just_enough(planner, {.n_kv_tokens = kFew, .f16_cache = cu::F16Cache::kOn});
  const cu::CudaOptions options{.n_kv_tokens = kMany, .n_kv_tokens_least = kFew};
  const auto with = planner.plan(options, least_with_cache);
  CHECK(with.use_f16_cache);
  CHECK(with.n_kv_tokens == kFew);
  const auto without = planner.plan(options, least_with_cache - 1);
  CHECK_FALSE(without.use_f16_cache);
  CHECK(without.n_kv_tokens >= kFew);
  CHECK(without.peak() <= least_with_cache - 1);
}
