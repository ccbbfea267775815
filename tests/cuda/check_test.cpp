#include "cuda/runtime/check.h"

#include <cstdlib>
#include <string>

#include "core/error.h"
#include "tests/cuda/gpu.h"

namespace minfer::test {
namespace {

// The message of the Error that `call` throws, with its exit code in front; "" where it throws none.
template <typename Call>
std::string error_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return std::to_string(static_cast<int>(error.code())) + " " + error.what();
  }
  return "";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// MINFER_SMEM_LIMIT for one scope.
class LoweredLimit {
 public:
  explicit LoweredLimit(const char* bytes) { setenv("MINFER_SMEM_LIMIT", bytes, 1); }
  ~LoweredLimit() { unsetenv("MINFER_SMEM_LIMIT"); }
};

const char not_a_kernel = 0;

}  // namespace

TEST_CASE("check: a failed call throws with its op and reason", "[cuda][runtime]") {
  CHECK(error_of([] { cu::check(cudaSuccess, "gemm"); }).empty());
  const std::string error = error_of([] { cu::check(cudaErrorInvalidValue, "gemm"); });
  CHECK(contains(error, "4 gemm: "));
  CHECK(contains(error, "cudaErrorInvalidValue"));
}

TEST_CASE("check: a failed call's error is not met again by the next one", "[cuda][runtime]") {
  MINFER_REQUIRE_GPU();
  int value = 0;
  const auto bad_attribute = static_cast<cudaDeviceAttr>(1 << 20);
  CHECK_THROWS_AS(cu::check(cudaDeviceGetAttribute(&value, bad_attribute, 0), "attribute"), Error);
  CHECK(cudaGetLastError() == cudaSuccess);

  CHECK_THROWS_AS(cu::allow_shared_memory(&not_a_kernel, 64 * 1024, "attribute"), Error);
  CHECK(cudaGetLastError() == cudaSuccess);
  CHECK_NOTHROW(cu::check_launch("the next op"));
}

TEST_CASE("check: a launch that the card refuses names its op and leaves no error behind",
          "[cuda][runtime]") {
  MINFER_REQUIRE_GPU();
  void* nothing[] = {nullptr};
  (void)cudaLaunchKernel(&not_a_kernel, dim3(1), dim3(32), nothing, 0, nullptr);
  CHECK(contains(error_of([] { cu::check_launch("rope_store"); }), "rope_store: "));
  CHECK_NOTHROW(cu::check_launch("the next op"));
}

TEST_CASE("check: too much shared memory is refused with both numbers", "[cuda][runtime]") {
  MINFER_REQUIRE_GPU();
  const size_t limit = cu::shared_memory_limit();
  CHECK(limit >= 48 * 1024);
  const std::string error =
      error_of([limit] { cu::allow_shared_memory(&not_a_kernel, limit + 1, "flash_prefill"); });
  CHECK(contains(error, "4 flash_prefill: "));
  CHECK(contains(error, std::to_string(limit + 1)));
  CHECK(contains(error, std::to_string(limit) + " available"));
  CHECK(cudaGetLastError() == cudaSuccess);
}

TEST_CASE("check: MINFER_SMEM_LIMIT stands for a smaller card, never for a larger one", "[cuda][runtime]") {
  MINFER_REQUIRE_GPU();
  const size_t whole = cu::shared_memory_limit();
  {
    const LoweredLimit limit("65536");
    CHECK(cu::shared_memory_limit() == 65536);
    const std::string error = error_of([] { cu::allow_shared_memory(&not_a_kernel, 65537, "gemm"); });
    CHECK(contains(error, "65537"));
    CHECK(contains(error, "65536 available"));
  }
  {
    const LoweredLimit limit("100000000");
    CHECK(cu::shared_memory_limit() == whole);
  }
  for (const char* nonsense : {"0", "64k", "-1"}) {
    const LoweredLimit limit(nonsense);
    CHECK(contains(error_of([] { cu::shared_memory_limit(); }), "2 MINFER_SMEM_LIMIT="));
  }
  CHECK(cu::shared_memory_limit() == whole);
}

TEST_CASE("check: a broken requirement names its op and the condition", "[cuda][runtime]") {
  const int n = 7;
  CHECK(error_of([] { MINFER_REQUIRE("rmsnorm", n % 4 == 0); }) == "1 rmsnorm: requires n % 4 == 0");
  CHECK_NOTHROW([] { MINFER_REQUIRE("rmsnorm", n == 7); }());
}

}  // namespace minfer::test
