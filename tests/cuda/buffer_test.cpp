#include "cuda/runtime/buffer.h"

#include <numeric>

#include "core/error.h"
#include "cuda/runtime/align.h"
#include "tests/cuda/gpu.h"

namespace minfer::test {

TEST_CASE("buffer: values come back, and fill reaches every byte", "[cuda][runtime]") {
  MINFER_REQUIRE_GPU();
  std::vector<int32_t> values(1001), back(1001);
  std::iota(values.begin(), values.end(), -500);
  cu::DeviceBuffer<int32_t> buffer{std::span<const int32_t>(values)};
  CHECK(buffer.size() == 1001);
  CHECK(buffer.bytes() == 4004);
  buffer.download(back);
  CHECK(back == values);
  buffer.fill_bytes(0xff);
  buffer.download(back);
  CHECK(back == std::vector<int32_t>(1001, -1));
}

TEST_CASE("buffer: moves hand the memory over", "[cuda][runtime]") {
  MINFER_REQUIRE_GPU();
  cu::DeviceBuffer<float> a(16), b(32);
  float* const p = b.data();
  a = std::move(b);
  CHECK(a.data() == p);
  CHECK(a.size() == 32);
  const cu::DeviceBuffer<float> c(std::move(a));
  CHECK(c.data() == p);
  CHECK(c.size() == 32);

  cu::PinnedBuffer<float> host(8);
  host[7] = 3.0f;
  const cu::PinnedBuffer<float> moved(std::move(host));
  CHECK(moved[7] == 3.0f);
}

TEST_CASE("buffer: nothing needs no memory", "[cuda][runtime]") {
  MINFER_REQUIRE_GPU();
  const cu::DeviceBuffer<float> none(0), from_none{std::span<const float>()};
  CHECK(none.data() == nullptr);
  CHECK(from_none.data() == nullptr);
  CHECK(cu::aligned16(none.data()));
}

TEST_CASE("buffer: no room is an error that leaves none behind", "[cuda][runtime]") {
  MINFER_REQUIRE_GPU();
  const size_t n = size_t{1} << 46;  // 64 TB
  CHECK_THROWS_AS(cu::DeviceBuffer<char>(n), Error);
  CHECK(cudaGetLastError() == cudaSuccess);
  CHECK_NOTHROW(cu::DeviceBuffer<char>(16));
}

TEST_CASE("buffer: the peak counts from its reset, beyond what was there then", "[cuda][runtime]") {
  MINFER_REQUIRE_GPU();
  const cu::DeviceBuffer<char> before(1000);
  cu::reset_peak_device_memory();
  CHECK(cu::peak_device_memory() == 0);
  { const cu::DeviceBuffer<char> a(300), b(200); }
  const cu::DeviceBuffer<char> c(400);
  CHECK(cu::peak_device_memory() == 500);
  cu::reset_peak_device_memory();
  CHECK(cu::peak_device_memory() == 0);
}

TEST_CASE("buffer: a fill is done, for streams that do not wait for it too", "[cuda][runtime]") {
  MINFER_REQUIRE_GPU();
  constexpr size_t kBytes = size_t{1} << 28;  // long enough to be seen under way
  cu::DeviceBuffer<unsigned char> buffer(kBytes);
  const cu::Stream stream;
  for (const int value : {1, 2, 3}) {
    buffer.fill_bytes(value);
    unsigned char last = 0;
    cu::check(cudaMemcpyAsync(&last, buffer.data() + kBytes - 1, 1, cudaMemcpyDeviceToHost, stream.get()),
              "copy");
    stream.synchronize("copy");
    CHECK(int{last} == value);
  }
}

TEST_CASE("buffer: copies larger than it are refused", "[cuda][runtime]") {
  MINFER_REQUIRE_GPU();
  cu::DeviceBuffer<float> buffer(4);
  std::vector<float> host(5);
  CHECK_THROWS_AS(buffer.upload(host), Error);
  CHECK_THROWS_AS(buffer.download(host), Error);
}

}  // namespace minfer::test
