// What is given instead of a model, each named for what it is. Read through Reader, as everybody does.
#include "gguf/file_kind.h"

#include <cstring>

#include "gguf/reader.h"
#include "tests/support/catch.h"
#include "tests/support/gguf_files.h"
#include "tests/support/temp_dir.h"

namespace minfer::gguf {
namespace {

using test::Bytes;
using test::bytes_of;
using test::check_message;
using test::file_with;
using test::patch;
using test::read_error;

TEST_CASE("file kind: names an empty file", "[gguf][file_kind]") {
  CHECK(read_error({}) == "f.gguf: empty file");
  const test::TempDir dir;
  test::write_file(dir.path("m.gguf"), "");
  try {
    Reader::open(dir.path("m.gguf"));
    FAIL("read");
  } catch (const Error& e) {
    CHECK(e.what() == dir.path("m.gguf") + ": empty file");
  }
}

TEST_CASE("file kind: names a Git LFS pointer", "[gguf][file_kind]") {
  const std::string pointer =
      "version https://git-lfs.github.com/spec/v1\noid "
      "sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393"
      "\nsize 4683073184\n";
  CHECK(read_error(bytes_of(pointer)) ==
        "f.gguf: a Git LFS pointer, not the model itself (which has 4683073184 bytes): run `git lfs pull`, "
        "or download "
        "the file");
  check_message(read_error(bytes_of("version https://git-lfs.github.com/spec/v1\n")), "a Git LFS pointer");
}

TEST_CASE("file kind: names an HTML page", "[gguf][file_kind]") {
  for (const char* page : {"<!DOCTYPE html><html>", "<html lang=en>", "\n\n  <!doctype HTML>",
                           "\xef\xbb\xbf<HTML>", "<?xml version='1.0'?><Error>", "<head>"}) {
    check_message(read_error(bytes_of(page)), "f.gguf: an HTML or XML page, not a model");
  }
}

TEST_CASE("file kind: names the formats before GGUF", "[gguf][file_kind]") {
  for (const char* magic : {"tjgg", "fmgg", "lmgg", "algg", "ggjt", "ggmf", "ggml", "ggla"}) {
    check_message(read_error(bytes_of(std::string(magic) + std::string(60, '\1'))),
                  "a format older than GGUF");
  }
}

TEST_CASE("file kind: names archives and other models' formats", "[gguf][file_kind]") {
  check_message(read_error(bytes_of("PK\x03\x04 and more")), "PyTorch checkpoint");
  check_message(read_error(bytes_of("\x80\x02}q")), "PyTorch checkpoint");
  check_message(read_error(bytes_of("\x1f\x8b\x08\x08 more")), "a compressed file");
  check_message(read_error(bytes_of(std::string("\x40\0\0\0\0\0\0\0{\"a\":{}}", 16))), "a safetensors file");
  check_message(read_error(Bytes(4096)), "begins with zeros");
  CHECK(read_error(bytes_of("plain\ntext file with words")) ==
        "f.gguf: no GGUF file: it begins with 'plain\\x0atext file ', not with 'GGUF'");
}

TEST_CASE("file kind: names a big-endian file", "[gguf][file_kind]") {
  Bytes file = test::every_type_file();
  patch(file, 4, uint32_t{0x03000000});
  CHECK(read_error(file) ==
        "f.gguf: a big-endian GGUF file (version 3 with its bytes swapped): minfer reads little-endian ones");
  std::memcpy(file.data(), "FUGG", 4);
  check_message(read_error(file), "a big-endian GGUF file");
}

TEST_CASE("file kind: refuses versions but 2 and 3", "[gguf][file_kind]") {
  for (const uint32_t version : {0u, 1u, 4u, 77u}) {
    Bytes file = test::every_type_file();
    patch(file, 4, version);
    CHECK(read_error(file) == "f.gguf: GGUF version " + std::to_string(version) + ", minfer reads 2 to 3");
  }
}

TEST_CASE("file kind: a truncated file says what it has and what it needs", "[gguf][file_kind]") {
  const Bytes file = test::every_type_file();
  const Reader reader = Reader::from_bytes(file);
  const Tensor& last = reader.tensors().back();
  const auto needed = static_cast<size_t>(last.data.data() + last.data.size() - file.data());
  CHECK(read_error(std::span(file).first(needed)) == "");
  for (const size_t n : {needed - 1, needed - 100, needed - 200}) {
    CHECK(read_error(std::span(file).first(n)) == "f.gguf: has " + std::to_string(n) + " bytes, needs " +
                                                      std::to_string(needed) +
                                                      " for its 4 tensors: incomplete download?");
  }
  CHECK(read_error(std::span(file).first(3)) ==
        "f.gguf: has 3 bytes, needs at least 24 for the header: incomplete download?");
  CHECK(
      read_error(std::span(file).first(40)) ==
      "f.gguf: header: 4 tensors of at least 33 bytes each, but the file has 24 bytes left of 40: incomplete "
      "download, or damaged?");
  Writer out;
  out.add_string("some.key", "value");
  const Bytes no_tensors = out.finish();
  CHECK(read_error(std::span(no_tensors).first(40)) ==
        "f.gguf: has 40 bytes, needs at least 44 for the value type of key 0 'some.key': incomplete "
        "download, or "
        "damaged?");
}

TEST_CASE("file kind: names shards that were joined into one file", "[gguf][file_kind]") {
  Bytes joined;
  for (const Bytes& shard : test::three_shards()) joined.insert(joined.end(), shard.begin(), shard.end());
  check_message(read_error(joined), "another GGUF file begins: shards joined into one?");

  // Without tensors in the first, and without padding behind it.
  Bytes bare = test::shard_file({.no = 0, .count = 2, .n_tensors = 1, .tensors = {}});
  while (bare.back() == std::byte{0}) bare.pop_back();
  bare.insert(bare.end(), 3, std::byte{0});  // what belongs to the last value
  const Bytes second = test::shard_file({.no = 1, .count = 2, .n_tensors = 1, .tensors = {"a"}});
  bare.insert(bare.end(), second.begin(), second.end());
  check_message(read_error(bare), "another GGUF file begins: shards joined into one?");
}

TEST_CASE("file kind: names an adapter", "[gguf][file_kind]") {
  check_message(read_error(file_with([](Writer& out) { out.add_string("general.type", "adapter"); })),
                "f.gguf: an adapter (LoRA), not a model");
  check_message(read_error(file_with([](Writer& out) { out.add_string("adapter.type", "lora"); })),
                "f.gguf: an adapter (LoRA), not a model");
}

TEST_CASE("file kind: names a projector", "[gguf][file_kind]") {
  for (const char* type : {"mmproj", "projector"}) {
    check_message(read_error(file_with([&](Writer& out) { out.add_string("general.type", type); })),
                  "f.gguf: a multimodal projector, not a model");
  }
  check_message(read_error(file_with([](Writer& out) { out.add_string("general.architecture", "clip"); })),
                "f.gguf: a multimodal projector, not a model");
  check_message(read_error(file_with([](Writer& out) { out.add_string("general.type", "imatrix"); })),
                "an importance matrix");
  CHECK(read_error(file_with([](Writer& out) { out.add_string("general.type", "model"); })) == "");
}

}  // namespace
}  // namespace minfer::gguf
