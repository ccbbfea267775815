#include "gguf/writer.h"

#include <array>
#include <cstring>
#include <numeric>

#include "gguf/reader.h"
#include "tests/support/catch.h"
#include "tests/support/gguf_files.h"

namespace minfer::gguf {
namespace {

using test::Bytes;

TEST_CASE("writer: the bytes of a small file are the specification's", "[gguf][writer]") {
  Writer out;
  out.add_u16("k", 0x0102);
  const std::array<uint64_t, 1> dims{1};
  out.add_tensor("t", TensorType::kF32, dims, test::bytes_of("data"));
  const Bytes file = out.finish();
  const std::string expected = std::string("GGUF\3\0\0\0", 8) + std::string("\1\0\0\0\0\0\0\0", 8) +
                               std::string("\1\0\0\0\0\0\0\0", 8) +                            // counts
                               std::string("\1\0\0\0\0\0\0\0k\2\0\0\0\2\1", 15) +              // key
                               std::string("\1\0\0\0\0\0\0\0t\1\0\0\0\1\0\0\0\0\0\0\0", 21) +  // name, dims
                               std::string("\0\0\0\0\0\0\0\0\0\0\0\0", 12) +                   // type, offset
                               std::string(24, '\0') + "data" + std::string(28, '\0');         // padding
  CHECK(test::text_of(file) == expected);
}

TEST_CASE("writer: what it writes is read back, in both versions and at any alignment", "[gguf][writer]") {
  const uint32_t version = GENERATE(2u, 3u);
  const uint32_t alignment = GENERATE(1u, 2u, 8u, 32u, 64u, 4096u, 1u << 20);
  const Bytes file = test::every_type_file(version, alignment);
  const Reader reader = Reader::from_bytes(file);
  CHECK(reader.version() == version);
  CHECK(reader.file_bytes() == file.size());
  CHECK(reader.metadata().get_u32("general.alignment").value_or(32) == alignment);
  REQUIRE(reader.tensors().size() == 4);
  for (const Tensor& tensor : reader.tensors()) {
    CHECK(static_cast<uint64_t>(tensor.data.data() - file.data()) % alignment == 0);
    for (size_t i = 0; i < tensor.data.size(); ++i) {
      REQUIRE(tensor.data[i] == static_cast<std::byte>(i * 7 % 64));
    }
  }
}

TEST_CASE("writer: a file without tensors or keys is whole", "[gguf][writer]") {
  const Bytes file = Writer().finish();
  CHECK(file.size() == 32);
  const Reader reader = Reader::from_bytes(file);
  CHECK(reader.tensors().empty());
  CHECK(reader.metadata().entries().empty());
  CHECK(reader.find("t") == nullptr);
}

TEST_CASE("writer: raw values reach the file as they are", "[gguf][writer]") {
  const Bytes file =
      test::file_with([](Writer& out) { out.add_raw("b", ValueType::kBool, test::bytes_of("\2")); });
  CHECK(test::read_error(file) == "f.gguf: key 0 'b': a bool is 2, wanted 0 or 1");
}

}  // namespace
}  // namespace minfer::gguf
