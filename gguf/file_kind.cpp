#include "gguf/file_kind.h"

#include <algorithm>
#include <bit>
#include <string_view>

#include "gguf/cursor.h"
#include "gguf/error.h"
#include "gguf/format.h"

namespace minfer::gguf {
namespace {

using std::string_view_literals::operator""sv;

// Magic, version and the two counts.
constexpr size_t kHeaderBytes = 24;
constexpr size_t kMaxLooked = 512;

struct Kind {
  std::string_view start;
  const char* what;
};

constexpr const char* kOldFormat =
    "a model file in a format older than GGUF (ggml, ggmf, ggjt or ggla): convert the original model to GGUF";
constexpr const char* kPyTorch = "a ZIP archive or PyTorch checkpoint, not GGUF: convert the model to GGUF";
constexpr const char* kPacked = "a compressed file, not GGUF: unpack it first";

// The old formats wrote their magic as a u32, so that on disk it stands reversed.
constexpr Kind kKinds[] = {
    {"tjgg"sv, kOldFormat},
    {"fmgg"sv, kOldFormat},
    {"lmgg"sv, kOldFormat},
    {"algg"sv, kOldFormat},
    {"ggjt"sv, kOldFormat},
    {"ggmf"sv, kOldFormat},
    {"ggml"sv, kOldFormat},
    {"ggla"sv, kOldFormat},
    {"FUGG"sv, "a big-endian GGUF file: minfer reads little-endian ones"},
    {"PK\x03\x04"sv, kPyTorch},
    {"\x80\x02"sv, kPyTorch},
    {"\x1f\x8b"sv, kPacked},
    {"\x28\xb5\x2f\xfd"sv, kPacked},
    {"\xfd"
     "7zXZ"sv,
     kPacked},
    {"BZh"sv, kPacked},
    {"7z\xbc\xaf"sv, kPacked},
    {"\x89HDF"sv, "an HDF5 file, not GGUF: convert the model to GGUF"},
    {"\0\0\0\0"sv,
     "no GGUF file: it begins with zeros (a download that reserved its space and was never filled?)"},
};

bool starts_with_nocase(std::string_view text, std::string_view lower) {
  return text.size() >= lower.size() &&
         std::equal(lower.begin(), lower.end(), text.begin(), [](char want, char c) {
           return want == (c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c);
         });
}

std::string_view without_leading_space(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  return text;
}

bool is_markup(std::string_view text) {
  const std::string_view page = without_leading_space(text);
  return starts_with_nocase(page, "<!doctype html") || starts_with_nocase(page, "<html") ||
         starts_with_nocase(page, "<?xml") || starts_with_nocase(page, "<head");
}

// safetensors: u64 length of a JSON header, then the header.
bool is_safetensors(std::string_view text) {
  return text.size() > 10 && text.substr(8, 2) == "{\"";
}

std::string lfs_message(std::string_view text) {
  std::string message = "a Git LFS pointer, not the model itself";
  constexpr std::string_view kSize = "\nsize ";
  if (const size_t at = text.find(kSize); at != std::string_view::npos) {
    const std::string_view rest = text.substr(at + kSize.size());
    const std::string_view digits =
        rest.substr(0, std::min(rest.find_first_not_of("0123456789"), size_t{20}));
    if (!digits.empty()) message += " (which has " + std::string(digits) + " bytes)";
  }
  return message + ": run `git lfs pull`, or download the file";
}

std::string describe(std::string_view text) {
  if (text.starts_with("version https://git-lfs")) return lfs_message(text);
  if (is_markup(text)) return "an HTML or XML page, not a model: the download gave an error or a web page";
  for (const Kind& kind : kKinds) {
    if (text.starts_with(kind.start)) return kind.what;
  }
  if (is_safetensors(text)) return "a safetensors file, not GGUF: convert the model to GGUF";
  return "no GGUF file: it begins with " + quoted(text.substr(0, 16)) + ", not with 'GGUF'";
}

}  // namespace

void require_gguf(std::span<const std::byte> bytes, const std::string& file_name) {
  const auto fail = [&](const std::string& why) { throw Error(printable(file_name) + ": " + why); };
  if (bytes.empty()) fail("empty file");
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()),
                              std::min(bytes.size(), kMaxLooked));
  if (!text.starts_with(kMagic) && !kMagic.starts_with(text)) fail(describe(text));
  if (bytes.size() < kHeaderBytes) {
    fail("has " + std::to_string(bytes.size()) + " bytes, needs at least " + std::to_string(kHeaderBytes) +
         " for the header: incomplete download?");
  }
  const auto version = load<uint32_t>(bytes.data() + kMagic.size());
  if (version != 0 && (version & 0xffff) == 0) {
    fail("a big-endian GGUF file (version " + std::to_string(__builtin_bswap32(version)) +
         " with its bytes swapped): minfer reads little-endian ones");
  }
  if (version < kMinVersion || version > kMaxVersion) {
    fail("GGUF version " + std::to_string(version) + ", minfer reads " + std::to_string(kMinVersion) +
         " to " + std::to_string(kMaxVersion));
  }
}

void require_single(std::span<const std::byte> bytes, std::initializer_list<uint64_t> places,
                    const std::string& file_name) {
  for (const uint64_t at : places) {
    if (at > bytes.size() || bytes.size() - at < kHeaderBytes) continue;
    const std::byte* here = bytes.data() + at;
    const std::string_view text(reinterpret_cast<const char*>(here), kMagic.size());
    const auto version = load<uint32_t>(here + kMagic.size());
    if (text != kMagic || version == 0 || version > kMaxVersion) continue;
    throw Error(
        printable(file_name) + ": ends at byte " + std::to_string(at) + " of " +
        std::to_string(bytes.size()) +
        ", where another GGUF file begins: shards joined into one? Keep them apart and give the first");
  }
}

void require_model(const Metadata& metadata, const std::string& file_name) {
  const auto fail = [&](const std::string& why) { throw Error(printable(file_name) + ": " + why); };
  const auto type = metadata.get_string("general.type").value_or("");
  const auto architecture = metadata.get_string("general.architecture").value_or("");
  if (type == "adapter" || metadata.has("adapter.type")) {
    fail("an adapter (LoRA), not a model: give the model that it belongs to, with the adapter merged in");
  }
  if (type == "mmproj" || type == "projector" || architecture == "clip") {
    fail("a multimodal projector, not a model: give the language model that it belongs to");
  }
  if (type == "imatrix" || architecture == "imatrix") fail("an importance matrix, not a model");
}

}  // namespace minfer::gguf
