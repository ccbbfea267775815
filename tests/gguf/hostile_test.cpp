// Files from strangers: whatever is cut off or overwritten, the reader throws Error or gives views that lie
// inside the file, and never asks for more memory at once than the file's own size and a constant.
#include <algorithm>
#include <array>
#include <cstdio>
#include <numeric>
#include <random>

#include "gguf/reader.h"
#include "tests/support/alloc_meter.h"
#include "tests/support/catch.h"
#include "tests/support/gguf_files.h"
#include "tests/support/mutate.h"

namespace minfer::gguf {
namespace {

using test::AllocMeter;
using test::Bytes;

constexpr size_t kAllocConstant = size_t{1} << 20;

// Reads every byte that the reader shows. The sum keeps the compiler from leaving it out.
uint64_t touch(const Reader& reader) {
  uint64_t sum = 0;
  const auto add = [&](const void* at, size_t n) {
    const auto* bytes = static_cast<const unsigned char*>(at);
    sum = std::accumulate(bytes, bytes + n, sum);
  };
  for (const Entry& entry : reader.metadata().entries()) {
    add(entry.key.data(), entry.key.size());
    if (const auto* text = std::get_if<std::string_view>(&entry.value)) add(text->data(), text->size());
    if (const auto* array = std::get_if<ScalarArray>(&entry.value))
      add(array->bytes.data(), array->bytes.size());
    if (const auto* strings = std::get_if<StringArray>(&entry.value)) {
      for (const std::string_view text : *strings) add(text.data(), text.size());
    }
  }
  for (const Tensor& tensor : reader.tensors()) {
    add(tensor.name.data(), tensor.name.size());
    add(tensor.data.data(), tensor.data.size());
    REQUIRE(tensor.row_bytes() * tensor.n_rows() == tensor.data.size());
  }
  return sum;
}

// Calls every getter on every key: each gives a value or throws Error.
void get_everything(const Metadata& metadata) {
  const auto attempt = [](auto get) {
    try {
      get();
    } catch (const Error&) {
    }
  };
  for (const Entry& entry : metadata.entries()) {
    attempt([&] { (void)metadata.get_u32(entry.key); });
    attempt([&] { (void)metadata.get_f64(entry.key); });
    attempt([&] { (void)metadata.get_bool(entry.key); });
    attempt([&] { (void)metadata.get_string(entry.key); });
    attempt([&] { (void)metadata.get_strings(entry.key); });
    attempt([&] { (void)metadata.get_i32s(entry.key); });
    attempt([&] { (void)metadata.get_f32s(entry.key); });
  }
}

// Counts what became of the files. Anything but an Error, bad_alloc too, ends the test case.
struct Tally {
  size_t n_read = 0;
  size_t n_refused = 0;
  size_t largest = 0;  // bytes past the files' own size, over all files

  // True where the parts were read.
  bool read(const std::vector<Bytes>& files) {
    const std::vector<std::span<const std::byte>> parts(files.begin(), files.end());
    size_t n_bytes = 0;
    for (const Bytes& file : files) n_bytes += file.size();
    AllocMeter meter(n_bytes + kAllocConstant);
    bool whole = false;
    try {
      const Reader reader = Reader::from_parts(parts, "f.gguf");
      touch(reader);
      get_everything(reader.metadata());
      whole = true;
    } catch (const Error& e) {
      const std::string_view message = e.what();
      if (message.find('\n') != std::string_view::npos || !message.starts_with("f.gguf")) FAIL(message);
    }
    ++(whole ? n_read : n_refused);
    largest = std::max(largest, meter.largest() - std::min(meter.largest(), n_bytes));
    return whole;
  }

  void print(const char* what) const {
    std::printf("%s: %zu read, %zu refused, at most %zu bytes past a file's own size at once\n", what, n_read,
                n_refused, largest);
  }
};

size_t data_start(const Bytes& file) {
  const Reader reader = Reader::from_bytes(file);
  return static_cast<size_t>(reader.tensors().front().data.data() - file.data());
}

size_t data_end(const Bytes& file) {
  const Reader reader = Reader::from_bytes(file);
  const Tensor& last = reader.tensors().back();
  return static_cast<size_t>(last.data.data() + last.data.size() - file.data());
}

TEST_CASE("hostile: every truncation of a small file is refused", "[gguf][hostile]") {
  const uint32_t version = GENERATE(2u, 3u);
  const uint32_t alignment = GENERATE(1u, 32u);
  const Bytes file = test::every_type_file(version, alignment);
  const size_t needed = data_end(file);  // what follows pads the last tensor, and may be missing
  Tally tally;
  for (size_t n = 0; n <= file.size(); ++n) {
    INFO("cut to " << n << " of " << file.size());
    const bool whole = tally.read({Bytes(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(n))});
    REQUIRE(whole == (n >= needed));
  }
  tally.print("truncations");
}

TEST_CASE("hostile: every truncation of a shard is refused", "[gguf][hostile]") {
  const std::vector<Bytes> shards = test::three_shards();
  Tally tally;
  for (size_t i = 0; i < shards.size(); ++i) {
    for (size_t n = 0; n < shards[i].size(); ++n) {
      std::vector<Bytes> cut = shards;
      cut[i] = Bytes(shards[i].begin(), shards[i].begin() + static_cast<std::ptrdiff_t>(n));
      INFO("shard " << i << " cut to " << n << " of " << shards[i].size());
      REQUIRE_FALSE(tally.read(cut));
    }
  }
  REQUIRE(tally.read(shards));
}

TEST_CASE("hostile: 20,000 mutations of a small file", "[gguf][hostile]") {
  const Bytes file = test::every_type_file();
  const size_t n_header = data_start(file);
  test::Mutator mutator(1);
  Tally tally;
  for (int i = 0; i < 20000; ++i) {
    INFO("mutation " << i);
    tally.read({mutator.mutate(file, n_header)});
  }
  tally.print("mutations");
  CHECK(tally.n_read > 500);
  CHECK(tally.n_refused > 10000);
}

TEST_CASE("hostile: 6,000 mutations of one shard of three", "[gguf][hostile]") {
  const std::vector<Bytes> shards = test::three_shards();
  test::Mutator mutator(2);
  Tally tally;
  for (int i = 0; i < 6000; ++i) {
    INFO("mutation " << i);
    std::vector<Bytes> files = shards;
    Bytes& file = files[static_cast<size_t>(i) % 3];
    file = mutator.mutate(file, file.size() - 64);
    tally.read(files);
  }
  tally.print("mutations of shards");
  CHECK(tally.n_read > 50);
  CHECK(tally.n_refused > 3000);
}

TEST_CASE("hostile: random bytes behind a true header", "[gguf][hostile]") {
  std::mt19937_64 random(3);
  Tally tally;
  for (int i = 0; i < 2000; ++i) {
    Bytes file(24 + random() % 400);
    for (std::byte& byte : file) byte = random() % 3 ? std::byte{0} : static_cast<std::byte>(random() % 16);
    std::copy_n(std::as_bytes(std::span(kMagic)).begin(), 4, file.begin());
    test::patch(file, 4, uint32_t{3});
    test::patch(file, 8, uint64_t{random() % 3});
    test::patch(file, 16, uint64_t{random() % 3});
    INFO("file " << i);
    tally.read({file});
  }
  tally.print("random files");
  CHECK(tally.n_refused > 1000);
}

// As many keys, and as many tensors, as the bounds allow, in as few bytes as they take.
TEST_CASE("hostile: the fullest directory stays within the allocation bound", "[gguf][hostile]") {
  Tally tally;
  Writer out;
  for (uint64_t i = 0; i < kMaxKeys; ++i) out.add_u8(std::to_string(i), 0);
  const std::array<uint64_t, 1> dims{1};
  for (uint64_t i = 0; i < kMaxTensors; ++i)
    out.add_tensor(std::to_string(i), TensorType::kI8, dims, Bytes(1));
  CHECK(tally.read({out.finish()}));

  Writer keys;
  for (uint64_t i = 0; i <= kMaxKeys; ++i) keys.add_u8(std::to_string(i), 0);
  CHECK_FALSE(tally.read({keys.finish()}));
  Writer tensors;
  for (uint64_t i = 0; i <= kMaxTensors; ++i)
    tensors.add_tensor(std::to_string(i), TensorType::kI8, dims, Bytes(1));
  CHECK_FALSE(tally.read({tensors.finish()}));
  tally.print("full directories");
}

TEST_CASE("hostile: the meter sees and refuses what is past its limit", "[gguf][hostile]") {
  AllocMeter meter(1000);
  { const std::vector<std::byte> fits(1000); }
  CHECK(meter.largest() == 1000);
  const auto oversized = [] { return Bytes(1001).size(); };
  CHECK_THROWS_AS(oversized(), std::bad_alloc);
  CHECK(meter.largest() == 1001);
}

}  // namespace
}  // namespace minfer::gguf
