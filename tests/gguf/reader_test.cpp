#include "gguf/reader.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "tests/support/catch.h"
#include "tests/support/gguf_files.h"
#include "tests/support/oracle.h"
#include "tests/support/temp_dir.h"

namespace minfer::gguf {
namespace {

namespace fs = std::filesystem;
using test::Bytes;
using test::bytes_of;
using test::check_message;
using test::file_with;
using test::patch;
using test::read_error;

std::string open_error(const fs::path& path) {
  try {
    Reader::open(path);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

// A writer's tensor of zeros, of exactly the bytes that `n_bytes` says.
void add_tensor(Writer& out, std::string_view name, TensorType type, const std::vector<uint64_t>& dims,
                size_t n_bytes) {
  out.add_tensor(name, type, dims, Bytes(n_bytes));
}

Bytes file_with_tensor(std::string_view name, TensorType type, const std::vector<uint64_t>& dims,
                       size_t n_bytes) {
  Writer out;
  add_tensor(out, name, type, dims, n_bytes);
  return out.finish();
}

TEST_CASE("reader: a tensor directory is views into the file", "[gguf][reader]") {
  const Bytes file = test::every_type_file();
  const Reader reader = Reader::from_bytes(file, "some name");
  CHECK(reader.name() == "some name");
  CHECK(reader.n_shards() == 1);
  REQUIRE(reader.tensors().size() == 4);
  const Tensor* q4 = reader.find("t.q4_0");
  REQUIRE(q4);
  CHECK(q4 == &reader.tensors()[2]);
  CHECK(q4->type == TensorType::kQ4_0);
  CHECK(q4->n_dims == 4);
  CHECK(q4->dims == std::array<uint64_t, 4>{32, 2, 1, 2});
  CHECK(q4->n_elements() == 128);
  CHECK(q4->n_rows() == 4);
  CHECK(q4->row_bytes() == 18);
  CHECK(q4->data.size() == 72);
  CHECK(reader.find("t.f16")->dims == std::array<uint64_t, 4>{3, 1, 1, 1});
  CHECK(reader.find("nothing") == nullptr);
  for (const Tensor& tensor : reader.tensors()) {
    CHECK(tensor.data.data() >= file.data());
    CHECK(tensor.data.data() + tensor.data.size() <= file.data() + file.size());
  }
}

TEST_CASE("reader: a file on disk is mapped, and stays so when the reader moves", "[gguf][reader]") {
  const test::TempDir dir;
  const Bytes file = test::every_type_file();
  test::write_file(dir.path("m.gguf"), test::text_of(file));
  Reader first = Reader::open(dir.path("m.gguf"));
  const std::byte* data = first.find("t.q6_K")->data.data();
  const Reader reader = std::move(first);
  reader.prefetch();
  CHECK(reader.name() == dir.path("m.gguf"));
  CHECK(reader.file_bytes() == file.size());
  CHECK(reader.find("t.q6_K")->data.data() == data);
  CHECK(data[1] == std::byte{7});
  CHECK(reader.metadata().get_string("a.string") == "h\xc3\xa9");
}

TEST_CASE("reader: absent, unreadable, a folder, a FIFO and a device: the system's reason",
          "[gguf][reader]") {
  const test::TempDir dir;
  CHECK(open_error(dir.path("no.gguf")) == dir.path("no.gguf") + ": cannot open: No such file or directory");
  CHECK(open_error(dir.path(".")) == dir.path(".") + ": cannot read: Is a directory");
  check_message(open_error("/dev/null"), "/dev/null: not a regular file");
  REQUIRE(::mkfifo(dir.path("fifo").c_str(), 0600) == 0);
  check_message(open_error(dir.path("fifo")), dir.path("fifo") + ": not a regular file");
  fs::create_symlink("loop", dir.path("loop"));
  check_message(open_error(dir.path("loop")), "cannot open: Too many levels of symbolic links");
  test::write_file(dir.path("file"), "x");
  check_message(open_error(dir.path("file/m.gguf")), "cannot open: Not a directory");
  fs::permissions(dir.path("file"), fs::perms::none);
  // Permissions do not hold root back, who then meets the contents.
  const char* wanted =
      ::access(dir.path("file").c_str(), R_OK) == 0 ? "begins with 'x'" : "cannot open: Permission denied";
  check_message(open_error(dir.path("file")), wanted);
}

TEST_CASE("reader: bytes behind the tensors that are no GGUF file do no harm", "[gguf][reader]") {
  Bytes file = test::every_type_file();
  const Bytes tail = bytes_of("GGU or anything else that is longer than a header");
  file.insert(file.end(), tail.begin(), tail.end());
  CHECK(read_error(file) == "");
}

TEST_CASE("reader: refuses counts beyond the file or the bounds", "[gguf][reader]") {
  const Bytes whole = test::every_type_file();
  for (const size_t at : {8, 16}) {
    const std::string what = at == 8 ? "tensors" : "keys";
    for (const uint64_t n : {uint64_t{4000}, uint64_t{1} << 32, uint64_t{1} << 63, ~uint64_t{0}}) {
      Bytes file = whole;
      patch(file, at, n);
      check_message(read_error(file), "f.gguf: header: " + std::to_string(n) + ' ' + what);
    }
  }
}

TEST_CASE("reader: refuses strings longer than the file", "[gguf][reader]") {
  Bytes file = file_with([](Writer& out) { out.add_string("k", "value"); });
  const size_t length = test::last_position(file, "value") - 8;
  for (const uint64_t n : {uint64_t{file.size()}, uint64_t{1} << 40, ~uint64_t{0}}) {
    patch(file, length, n);
    check_message(read_error(file), "for the value of key 0 'k': incomplete download, or damaged?");
  }
}

TEST_CASE("reader: refuses empty and overlong keys and names", "[gguf][reader]") {
  check_message(read_error(file_with([](Writer& out) { out.add_u8("", 1); })), "key 0: empty key");
  const std::string long_key(65536, 'k');
  check_message(read_error(file_with([&](Writer& out) { out.add_u8(long_key, 1); })),
                "key of 65536 bytes, at most 65535 are allowed");
  CHECK(read_error(file_with([&](Writer& out) { out.add_u8(long_key.substr(1), 1); })) == "");
  check_message(read_error(file_with_tensor("", TensorType::kF32, {1}, 4)), "tensor 0: empty tensor name");
  check_message(read_error(file_with_tensor(std::string(1025, 'n'), TensorType::kF32, {1}, 4)),
                "tensor name of 1025 bytes, at most 1024");
  CHECK(read_error(file_with_tensor(std::string(1024, 'n'), TensorType::kF32, {1}, 4)) == "");
}

TEST_CASE("reader: refuses duplicate keys", "[gguf][reader]") {
  CHECK(read_error(file_with([](Writer& out) {
          out.add_u8("same", 1);
          out.add_string("same", "x");
        })) == "f.gguf: key 'same': stands in the file twice");
}

TEST_CASE("reader: refuses duplicate tensor names", "[gguf][reader]") {
  CHECK(read_error(file_with([](Writer& out) { add_tensor(out, "t", TensorType::kF32, {8}, 32); })) ==
        "f.gguf: tensor 't' stands in the file twice");
}

TEST_CASE("reader: refuses value types that are none", "[gguf][reader]") {
  for (const uint32_t type : {13u, 255u, 0xffffffffu}) {
    const auto value_type = static_cast<ValueType>(type);
    const std::string number = std::to_string(type);
    check_message(read_error(file_with([&](Writer& out) { out.add_raw("k", value_type, Bytes(8)); })),
                  "f.gguf: key 0 'k': value type " + number + " is no value type");
    check_message(read_error(file_with([&](Writer& out) { out.add_scalars("k", value_type, 1, Bytes(8)); })),
                  "f.gguf: key 0 'k': array element type " + number + " is no value type");
  }
}

TEST_CASE("reader: refuses arrays longer than the file", "[gguf][reader]") {
  for (const ValueType type : {ValueType::kU8, ValueType::kU16, ValueType::kF32, ValueType::kU64,
                               ValueType::kString, ValueType::kArray}) {
    for (const uint64_t n : {uint64_t{1000}, uint64_t{1} << 61, uint64_t{1} << 63, ~uint64_t{0}}) {
      check_message(read_error(file_with([&](Writer& out) { out.add_scalars("k", type, n, Bytes(16)); })),
                    "f.gguf: key 0 'k': " + std::to_string(n));
    }
  }
}

TEST_CASE("reader: refuses bools but 0 and 1", "[gguf][reader]") {
  check_message(
      read_error(file_with([](Writer& out) { out.add_raw("k", ValueType::kBool, bytes_of("\xff")); })),
      "a bool is 255, wanted 0 or 1");
  check_message(read_error(file_with([](Writer& out) {
                  out.add_scalars("k", ValueType::kBool, 3, bytes_of(std::string("\1\0\2", 3)));
                })),
                "a bool is 2, wanted 0 or 1");
}

// `depth` arrays, each the only element of the one around it; the innermost is empty.
Bytes nested(int depth) {
  Bytes bytes;
  for (int i = 0; i < depth; ++i) {
    const bool innermost = i + 1 == depth;
    const size_t at = bytes.size();
    bytes.resize(at + 12);
    patch(bytes, at, innermost ? uint32_t{0} : static_cast<uint32_t>(ValueType::kArray));
    patch(bytes, at + 4, innermost ? uint64_t{0} : uint64_t{1});
  }
  return bytes;
}

TEST_CASE("reader: refuses arrays nested too deep", "[gguf][reader]") {
  const auto error = [](int depth) {
    return read_error(file_with([&](Writer& out) { out.add_raw("k", ValueType::kArray, nested(depth)); }));
  };
  CHECK(error(1) == "");
  CHECK(error(kMaxArrayDepth) == "");
  check_message(error(kMaxArrayDepth + 1), "key 0 'k': arrays nested more than 4 deep");
  check_message(error(100000), "key 0 'k': arrays nested more than 4 deep");
}

TEST_CASE("reader: refuses alignments that are none", "[gguf][reader]") {
  for (const uint32_t alignment : {0u, 3u, 24u, 33u, 1u << 21, 0x80000000u, 0xffffffffu}) {
    CHECK(read_error(file_with([&](Writer& out) { out.add_u32("general.alignment", alignment); })) ==
          "f.gguf: general.alignment is " + std::to_string(alignment) +
              ", wanted a power of two up to 1048576");
  }
  check_message(
      read_error(file_with([](Writer& out) { out.add_u64("general.alignment", uint64_t{1} << 40); })),
      "general.alignment is 1099511627776");
  check_message(read_error(file_with([](Writer& out) { out.add_string("general.alignment", "32"); })),
                "key 'general.alignment': holds string, wanted an integer");
}

TEST_CASE("reader: refuses numbers of dimensions but 1 to 4", "[gguf][reader]") {
  check_message(read_error(file_with_tensor("w", TensorType::kF32, {}, 4)),
                "tensor 0 'w': 0 dimensions, wanted 1 to 4");
  check_message(read_error(file_with_tensor("w", TensorType::kF32, {1, 1, 1, 1, 1}, 4)),
                "5 dimensions, wanted 1 to 4");
  Bytes file = file_with_tensor("w", TensorType::kF32, {1}, 4);
  patch(file, test::last_position(file, "w") + 1, uint32_t{0xffffffff});
  check_message(read_error(file), "4294967295 dimensions, wanted 1 to 4");
}

TEST_CASE("reader: refuses dimensions of 0", "[gguf][reader]") {
  check_message(read_error(file_with_tensor("w", TensorType::kF32, {0}, 0)),
                "tensor 0 'w': dimension 0 is 0");
  check_message(read_error(file_with_tensor("w", TensorType::kF32, {4, 0, 2}, 0)), "dimension 1 is 0");
}

TEST_CASE("reader: refuses sizes that overflow", "[gguf][reader]") {
  constexpr uint64_t kBig = uint64_t{1} << 32;
  check_message(read_error(file_with_tensor("w", TensorType::kF32, {kBig, kBig}, 32)),
                "tensor 0 'w': the product of its dimensions overflows");
  check_message(read_error(file_with_tensor("w", TensorType::kF32, {1, 1, ~uint64_t{0}, 2}, 32)),
                "the product of its dimensions overflows");
  check_message(read_error(file_with_tensor("w", TensorType::kF32, {kBig, kBig / 2}, 32)),
                "its size in bytes overflows");
  check_message(read_error(file_with_tensor("w", TensorType::kQ6_K, {kBig, kBig / 2}, 32)),
                "are past any file");
  check_message(read_error(file_with_tensor("w", TensorType::kF32, {kBig, kBig / 64}, 32)),
                "incomplete download?");
}

TEST_CASE("reader: refuses rows that are not whole blocks", "[gguf][reader]") {
  check_message(read_error(file_with_tensor("w", TensorType::kQ4_0, {31, 32}, 558)),
                "tensor 0 'w': rows of 31 values are not whole blocks of q4_0 (32 values)");
  check_message(read_error(file_with_tensor("w", TensorType::kQ4_K, {128, 2}, 144)),
                "not whole blocks of q4_K");
}

TEST_CASE("reader: refuses unknown tensor types by name and number", "[gguf][reader]") {
  for (const uint32_t type : {4u, 5u, 31u, 36u, 1000u, 0xffffffffu}) {
    CHECK(read_error(file_with_tensor("w", static_cast<TensorType>(type), {32}, 32)) ==
          "f.gguf: tensor 0 'w': unknown tensor type " + std::to_string(type));
  }
}

TEST_CASE("reader: leaves known types that minfer does not decode to the engine", "[gguf][reader]") {
  for (const TensorType type : {TensorType::kIQ2_XXS, TensorType::kI32, TensorType::kTQ1_0}) {
    const TypeInfo* info = type_info(type);
    REQUIRE(info);
    CHECK_FALSE(info->supported);
    CHECK(read_error(file_with_tensor("w", type, {info->block_size, 2}, size_t{2} * info->block_bytes)) ==
          "");
  }
}

// Two f32 tensors [8]; the second one's offset, which is the last u64 before the data, is made `offset`.
Bytes second_at(uint64_t offset) {
  Bytes file = file_with([](Writer& out) { add_tensor(out, "other", TensorType::kF32, {8}, 32); });
  patch(file, test::last_position(file, "t") + 1 + 4 + 8 + 4, offset);
  return file;
}

TEST_CASE("reader: refuses offsets that are misaligned or past the file", "[gguf][reader]") {
  CHECK(read_error(second_at(32)) == "");
  check_message(read_error(second_at(33)), "tensor 1 't': offset 33 is no multiple of the alignment, 32");
  check_message(read_error(second_at(64)), "for its 2 tensors: incomplete download?");
  check_message(read_error(second_at(uint64_t{1} << 40)), "incomplete download?");
  check_message(read_error(second_at(~uint64_t{31})), "are past any file");
}

TEST_CASE("reader: refuses tensors that overlap", "[gguf][reader]") {
  CHECK(read_error(second_at(0)).starts_with("f.gguf: tensors "));
  check_message(read_error(second_at(0)), "(from 0) overlap");
}

TEST_CASE("reader: tensors may stand in any order and leave gaps", "[gguf][reader]") {
  Writer out;
  add_tensor(out, "a", TensorType::kF32, {8}, 96);
  add_tensor(out, "b", TensorType::kF32, {8}, 32);
  Bytes file = out.finish();
  CHECK(read_error(file) == "");
  patch(file, test::last_position(file, "a") + 1 + 4 + 8 + 4, uint64_t{96});
  patch(file, test::last_position(file, "b") + 1 + 4 + 8 + 4, uint64_t{32});
  const Reader reader = Reader::from_bytes(file);
  CHECK(reader.find("a")->data.data() - reader.find("b")->data.data() == 64);
}

// Seconds of the quickest of five: another process's turn is no fault of ours.
template <typename Work>
double quickest(Work work) {
  double best = 1e9;
  for (int i = 0; i < 5; ++i) {
    const auto start = std::chrono::steady_clock::now();
    work();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

TEST_CASE("reader: 152k strings in well under 0.3 s", "[gguf][reader]") {
  std::vector<std::string> tokens(152064);
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = "token" + std::to_string(i);
  const Bytes file = file_with([&](Writer& out) { out.add_strings("tokenizer.ggml.tokens", tokens); });
  size_t n_bytes = 0;
  const double seconds = quickest([&] {
    const Reader reader = Reader::from_bytes(file);
    const StringArray strings = *reader.metadata().get_strings("tokenizer.ggml.tokens");
    n_bytes = 0;
    for (const std::string_view token : strings) n_bytes += token.size();
  });
  std::printf("152064 strings, %zu bytes, read and walked in %.1f ms\n", n_bytes, 1e3 * seconds);
  CHECK(n_bytes == 152064 * 5 + 10 + 90 * 2 + 900 * 3 + 9000 * 4 + 90000 * 5 + 52064 * 6);
  CHECK(seconds < 0.3);
}

TEST_CASE("reader: every oracle file is whole, and quickly read", "[gguf][reader][oracle]") {
  auto files = test::oracle_files("parity", ".gguf");
  const auto tokenizers = test::oracle_files("tokenizer", ".gguf");
  files.insert(files.end(), tokenizers.begin(), tokenizers.end());
  if (files.empty()) MINFER_SKIP("no *.gguf in the oracle");
  for (const fs::path& path : files) {
    INFO(path);
    const Reader reader = Reader::open(path);
    const double seconds = quickest([&] { Reader::open(path); });
    std::printf("%s: %zu keys, %zu tensors, %.1f ms\n", path.filename().c_str(),
                reader.metadata().entries().size(), reader.tensors().size(), 1e3 * seconds);
    CHECK(seconds < 0.3);
    CHECK(reader.metadata().get_string("general.architecture"));
    CHECK(reader.file_bytes() == fs::file_size(path));
    CHECK(reader.tensors().empty() == (path.parent_path().filename() == "tokenizer"));
  }
}

}  // namespace
}  // namespace minfer::gguf
