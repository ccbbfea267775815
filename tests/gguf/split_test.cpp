#include <array>
#include <filesystem>

#include "gguf/reader.h"
#include "tests/support/catch.h"
#include "tests/support/gguf_files.h"
#include "tests/support/oracle.h"
#include "tests/support/temp_dir.h"

namespace minfer::gguf {
namespace {

namespace fs = std::filesystem;
using test::Bytes;
using test::shard_file;
using test::three_shards;

std::string shard_name(int no, int count = 3, const std::string& stem = "m") {
  char suffix[64];
  std::snprintf(suffix, sizeof(suffix), "-%05d-of-%05d.gguf", no + 1, count);
  return stem + suffix;
}

// The shards of a model in a folder of their own.
struct Folder {
  explicit Folder(const std::vector<Bytes>& shards = three_shards()) {
    for (size_t i = 0; i < shards.size(); ++i) write(static_cast<int>(i), shards[i]);
  }
  void write(int no, const Bytes& bytes) const { test::write_file(path(no), test::text_of(bytes)); }
  std::string path(int no) const { return dir.path(shard_name(no)); }
  std::string error(int no = 0) const {
    try {
      Reader::open(path(no));
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  }
  test::TempDir dir;
};

std::string parts_error(const std::vector<Bytes>& shards) {
  const std::vector<std::span<const std::byte>> parts(shards.begin(), shards.end());
  try {
    Reader::from_parts(parts, "m");
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST_CASE("split: the first shard brings the rest", "[gguf][split]") {
  const Folder folder;
  const Reader reader = Reader::open(folder.path(0));
  CHECK(reader.n_shards() == 3);
  CHECK(reader.file_bytes() ==
        fs::file_size(folder.path(0)) + fs::file_size(folder.path(1)) + fs::file_size(folder.path(2)));
  CHECK(reader.metadata().get_string("general.architecture") == "llama");
  REQUIRE(reader.tensors().size() == 5);
  for (size_t i = 0; i < 5; ++i) {
    const std::string name(1, static_cast<char>('a' + i));
    CHECK(reader.tensors()[i].name == name);
    REQUIRE(reader.find(name));
    CHECK(reader.find(name)->data[7] == std::byte{0x3f});  // 1.0f follows 0.0f
  }
}

TEST_CASE("split: parts in memory", "[gguf][split]") {
  const std::vector<Bytes> shards = three_shards();
  const std::vector<std::span<const std::byte>> parts(shards.begin(), shards.end());
  const Reader reader = Reader::from_parts(parts, "m");
  CHECK(reader.n_shards() == 3);
  CHECK(reader.tensors().size() == 5);
  CHECK(reader.find("e") == &reader.tensors()[4]);
  CHECK(parts_error({}) == "m: no parts given");
  CHECK(parts_error({shards[0]}) == "m: a model split into 3 shards, but 1 given");
  CHECK(parts_error({shards[0], shards[1]}) == "m: a model split into 3 shards, but 2 given");
  CHECK(parts_error({test::every_type_file(), shards[1]}) == "m: a model split into 1 shards, but 2 given");
}

TEST_CASE("split: a relative path and a file without a folder work", "[gguf][split]") {
  const Folder folder;
  const fs::path before = fs::current_path();
  fs::current_path(fs::path(folder.path(0)).parent_path());
  const size_t bare = Reader::open(shard_name(0)).tensors().size();
  const size_t dotted = Reader::open("./" + shard_name(0)).tensors().size();
  fs::current_path(before);
  CHECK(bare == 5);
  CHECK(dotted == 5);
}

TEST_CASE("split: a first shard without tensors", "[gguf][split]") {
  const Folder folder({shard_file({.no = 0, .count = 2, .n_tensors = 1, .tensors = {}}),
                       shard_file({.no = 1, .count = 2, .n_tensors = 1, .tensors = {"a"}})});
  test::write_file(folder.dir.path(shard_name(0, 2)), test::read_file(folder.path(0)));
  test::write_file(folder.dir.path(shard_name(1, 2)), test::read_file(folder.path(1)));
  CHECK(Reader::open(folder.dir.path(shard_name(0, 2))).tensors().size() == 1);
}

TEST_CASE("split: another shard than the first names the first", "[gguf][split]") {
  const Folder folder;
  CHECK(folder.error(1) ==
        folder.path(1) + ": shard 2 of 3 of a split model: give the first, " + folder.path(0));
  CHECK(folder.error(2) ==
        folder.path(2) + ": shard 3 of 3 of a split model: give the first, " + folder.path(0));
}

TEST_CASE("split: a missing shard is named", "[gguf][split]") {
  const Folder folder;
  fs::remove(folder.path(1));
  CHECK(folder.error() ==
        folder.path(1) + ": cannot open: No such file or directory (shard 2 of 3 of " + folder.path(0) + ")");
}

TEST_CASE("split: a truncated shard is named with its own sizes", "[gguf][split]") {
  const Folder folder;
  Bytes half = three_shards()[2];
  half.resize(half.size() - 40);
  folder.write(2, half);
  CHECK(folder.error() == folder.path(2) + ": has " + std::to_string(half.size()) + " bytes, needs " +
                              std::to_string(half.size() + 40) + " for its 2 tensors: incomplete download?");
}

TEST_CASE("split: a shard of another model is named", "[gguf][split]") {
  const Folder folder;
  folder.write(1, shard_file({.no = 1, .count = 4, .n_tensors = 5, .tensors = {"c"}}));
  CHECK(folder.error() ==
        folder.path(1) + ": found as shard 2 of 3, but belongs to another model: its split.count is 4");
  folder.write(1, shard_file({.no = 2, .count = 3, .n_tensors = 5, .tensors = {"c"}}));
  CHECK(folder.error() ==
        folder.path(1) + ": found as shard 2 of 3, but its split.no (from 0) is 2, wanted 1");
  folder.write(1, shard_file({.no = 1, .count = 3, .n_tensors = 6, .tensors = {"c"}}));
  CHECK(folder.error() ==
        folder.path(1) +
            ": found as shard 2 of 3, but belongs to another model: its split.tensors.count is 6, "
            "the first shard's is 5");
  folder.write(1, test::every_type_file());
  CHECK(folder.error() == folder.path(1) + ": found as shard 2 of 3, but it is no part of a split model");
}

TEST_CASE("split: a shard of another architecture is named", "[gguf][split]") {
  Writer other;
  other.add_string("general.architecture", "qwen2");
  other.add_u32("split.no", 1);
  other.add_u32("split.count", 3);
  other.add_u32("split.tensors.count", 5);
  const Folder folder;
  folder.write(1, other.finish());
  CHECK(folder.error() ==
        folder.path(1) +
            ": found as shard 2 of 3, but belongs to another model: its general.architecture is "
            "'qwen2', the first shard's is 'llama'");
}

TEST_CASE("split: too few tensors in all", "[gguf][split]") {
  const Folder folder;
  folder.write(2, shard_file({.no = 2, .count = 3, .n_tensors = 5, .tensors = {"d"}}));
  CHECK(folder.error() == folder.path(0) + ": its 3 shards hold 4 tensors, but split.tensors.count is 5");
}

TEST_CASE("split: a tensor in two shards is refused", "[gguf][split]") {
  const Folder folder;
  folder.write(2, shard_file({.no = 2, .count = 3, .n_tensors = 5, .tensors = {"d", "b"}}));
  CHECK(folder.error() == folder.path(2) + ": tensor 'b' stands in an earlier shard too");
}

TEST_CASE("split: a first shard under another name", "[gguf][split]") {
  const Folder folder;
  const std::string renamed = folder.dir.path("model.gguf");
  fs::copy_file(folder.path(0), renamed);
  try {
    Reader::open(renamed);
    FAIL("read");
  } catch (const Error& e) {
    CHECK(std::string(e.what()) ==
          renamed +
              ": shard 1 of 3 of a split model, but its name does not end in "
              "-00001-of-00003.gguf, so the others cannot be found: give the files their own "
              "names back");
  }
  fs::copy_file(folder.path(1), folder.dir.path("second.gguf"));
  try {
    Reader::open(folder.dir.path("second.gguf"));
    FAIL("read");
  } catch (const Error& e) {
    CHECK(std::string(e.what()).ends_with("give the first, the one whose name ends in -00001-of-00003.gguf"));
  }
}

TEST_CASE("split: numbers that contradict themselves", "[gguf][split]") {
  const auto error = [](uint32_t no, uint32_t count) {
    return test::read_error(test::file_with([&](Writer& out) {
      out.add_u32("split.no", no);
      out.add_u32("split.count", count);
    }));
  };
  CHECK(error(0, 0) == "");
  CHECK(error(0, 1) == "");
  CHECK(error(1, 0) == "f.gguf: split.no is 1 (from 0), but split.count is 1");
  CHECK(error(3, 3) == "f.gguf: split.no is 3 (from 0), but split.count is 3");
  CHECK(error(0, 2) == "f.gguf: a model split into 2 shards, but 1 given");
  CHECK(error(0, 0xffffffff) == "f.gguf: split.count is 4294967295, at most 99999");
}

TEST_CASE("split: the three files of a real model", "[gguf][split][oracle]") {
  const auto first = test::find_model("smollm2-135m-instruct-q4_k_m-00001-of-00003.gguf");
  if (!first) MINFER_SKIP("no split SmolLM2");
  const Reader reader = Reader::open(*first);
  CHECK(reader.n_shards() == 3);
  CHECK(reader.tensors().size() == 272);
  CHECK(reader.find("token_embd.weight"));
  CHECK(reader.find("blk.29.ffn_down.weight"));
  std::string second = first->string();
  second.replace(second.find("00001-of"), 5, "00002");
  try {
    Reader::open(second);
    FAIL("read");
  } catch (const Error& e) {
    CHECK(std::string(e.what()) ==
          second + ": shard 2 of 3 of a split model: give the first, " + first->string());
  }
}

}  // namespace
}  // namespace minfer::gguf
