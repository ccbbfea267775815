#include "gguf/shards.h"

#include <charconv>
#include <string_view>

#include "gguf/error.h"

namespace minfer::gguf {
namespace {

constexpr uint64_t kMaxShards = 99999;  // five digits in the name
constexpr size_t kDigits = 5;

std::string five_digits(uint64_t n) {
  std::string digits = std::to_string(n);
  return std::string(kDigits - std::min(kDigits, digits.size()), '0') + digits;
}

// "-00001-of-00003.gguf", n from 1.
std::string suffix(uint64_t n, uint64_t count) {
  std::string text(1, '-');
  text += five_digits(n);
  text += "-of-";
  text += five_digits(count);
  return text += ".gguf";
}

std::string shard_of(uint64_t no, uint64_t count) {
  return "shard " + std::to_string(no + 1) + " of " + std::to_string(count);
}

[[noreturn]] void fail(const std::string& file_name, const std::string& why) {
  throw Error(printable(file_name) + ": " + why);
}

}  // namespace

Split read_split(const Metadata& metadata, const std::string& file_name) {
  Split split;
  split.no = metadata.get_u64("split.no").value_or(0);
  split.count = metadata.get_u64("split.count").value_or(1);
  split.n_tensors = metadata.get_u64("split.tensors.count");
  if (split.count == 0) split.count = 1;
  if (split.count > kMaxShards) {
    fail(file_name,
         "split.count is " + std::to_string(split.count) + ", at most " + std::to_string(kMaxShards));
  }
  if (split.no >= split.count) {
    fail(file_name, "split.no is " + std::to_string(split.no) + " (from 0), but split.count is " +
                        std::to_string(split.count));
  }
  return split;
}

void require_first(const Split& split, const std::filesystem::path& path) {
  if (split.no == 0) return;
  const std::string name = path.string();
  const std::string own = suffix(split.no + 1, split.count);
  const std::string first = name.ends_with(own)
                                ? name.substr(0, name.size() - own.size()) + suffix(1, split.count)
                                : "the one whose name ends in " + suffix(1, split.count);
  fail(name, shard_of(split.no, split.count) + " of a split model: give the first, " + printable(first));
}

std::filesystem::path shard_path(const std::filesystem::path& first, const Split& split, uint64_t no) {
  const std::string name = first.string();
  const std::string own = suffix(1, split.count);
  if (!name.ends_with(own)) {
    fail(name, shard_of(0, split.count) + " of a split model, but its name does not end in " + own +
                   ", so the others cannot be found: give the files their own names back");
  }
  return name.substr(0, name.size() - own.size()) + suffix(no + 1, split.count);
}

void require_sibling(const Metadata& first, const Split& first_split, const Metadata& other, uint64_t no,
                     const std::string& file_name) {
  const std::string place = shard_of(no, first_split.count);
  if (!other.has("split.count"))
    fail(file_name, "found as " + place + ", but it is no part of a split model");
  const Split split = read_split(other, file_name);
  if (split.count != first_split.count) {
    fail(file_name, "found as " + place + ", but belongs to another model: its split.count is " +
                        std::to_string(split.count));
  }
  if (split.no != no) {
    fail(file_name, "found as " + place + ", but its split.no (from 0) is " + std::to_string(split.no) +
                        ", wanted " + std::to_string(no));
  }
  if (split.n_tensors != first_split.n_tensors) {
    const auto count = [](const std::optional<uint64_t>& n) { return n ? std::to_string(*n) : "absent"; };
    fail(file_name, "found as " + place + ", but belongs to another model: its split.tensors.count is " +
                        count(split.n_tensors) + ", the first shard's is " + count(first_split.n_tensors));
  }
  for (const char* key : {"general.architecture", "general.name"}) {
    const auto ours = first.get_string(key);
    const auto its = other.get_string(key);
    if (its && ours != its) {
      fail(file_name, "found as " + place + ", but belongs to another model: its " + key + " is " +
                          quoted(*its) + ", the first shard's is " + quoted(ours.value_or("")));
    }
  }
}

}  // namespace minfer::gguf
