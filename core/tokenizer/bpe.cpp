#include "core/tokenizer/bpe.h"

#include <spdlog/spdlog.h>

#include <bit>
#include <optional>
#include <utility>

#include "core/error.h"
#include "core/tokenizer/byte_alphabet.h"
#include "core/tokenizer/hash.h"
#include "gguf/error.h"

namespace minfer {
namespace {

constexpr const char* kMergesKey = "tokenizer.ggml.merges";
constexpr const char* kPreKey = "tokenizer.ggml.pre";

uint64_t pair_key(TokenId left, TokenId right) {
  return (uint64_t{static_cast<uint32_t>(left)} << 32) | static_cast<uint32_t>(right);
}

const PretokenizerTraits& choose_pretokenizer(const gguf::Metadata& metadata,
                                              const std::string& override_name) {
  if (!override_name.empty()) {
    if (const auto* const traits = find_pretokenizer(override_name)) return *traits;
    throw Error(ExitCode::kUsage, "--pretokenizer " + gguf::quoted(override_name) +
                                      " is not known; known are " + known_pretokenizers());
  }
  const auto name = metadata.get_string(kPreKey);
  if (!name || name->empty()) {
    spdlog::warn(
        "the model file names no pre-tokenizer ({}): using 'default', which may not be what the model was "
        "trained with; --pretokenizer NAME chooses another",
        kPreKey);
    return *find_pretokenizer("default");
  }
  if (const auto* const traits = find_pretokenizer(*name)) return *traits;
  throw Error(ExitCode::kModelFile, std::string(kPreKey) + " " + gguf::quoted(*name) +
                                        " is not known; known are " + known_pretokenizers() +
                                        "; --pretokenizer NAME chooses one in its place");
}

}  // namespace

void MergeTable::reserve(size_t n) {
  slots_.assign(std::bit_ceil(n + n / 2 + 1), Slot{});
}

size_t MergeTable::slot_of(uint64_t key) const {
  const size_t mask = slots_.size() - 1;
  size_t at = hash_word(key) & mask;
  while (slots_[at].merge.id >= 0 && slots_[at].key != key) at = (at + 1) & mask;
  return at;
}

void MergeTable::insert(TokenId left, TokenId right, Merge merge) {
  Slot& slot = slots_[slot_of(pair_key(left, right))];
  if (slot.merge.id < 0) slot = {pair_key(left, right), merge};
}

Merge MergeTable::find(TokenId left, TokenId right) const {
  return slots_[slot_of(pair_key(left, right))].merge;
}

BpeTokenizer::BpeTokenizer(const gguf::Metadata& metadata, Vocab vocab,
                           const PretokenizerTraits& pretokenizer)
    : VocabTokenizer(std::move(vocab)),
      name_(pretokenizer.name),
      ignore_merges_(pretokenizer.ignore_merges),
      pretokenize_(pretokenizer.name) {
  std::string spelled;
  for (size_t byte = 0; byte < 256; ++byte) {
    spelled.clear();
    append_spelled(static_cast<uint8_t>(byte), spelled);
    byte_ids_[byte] = this->vocab().find(spelled);
    if (byte_ids_[byte] == kNoToken) byte_ids_[byte] = n_vocab() + static_cast<TokenId>(byte);
  }
  read_merges(metadata);
}

// The symbol that a part of a merge stands for: a token, or a byte that has none.
TokenId BpeTokenizer::find_symbol(std::string_view text) const {
  if (const TokenId id = vocab().find(text); id != kNoToken) return id;
  const std::string bytes = text.size() <= 2 ? unspell(text) : std::string();
  return bytes.size() == 1 ? byte_ids_[static_cast<uint8_t>(bytes[0])] : kNoToken;
}

// A merge one of whose symbols the vocabulary lacks can never apply, or would make a token that has no id;
// one that makes a control token would let plain text reach it. Such merges are left out.
void BpeTokenizer::read_merges(const gguf::Metadata& metadata) {
  const auto merges = metadata.get_strings(kMergesKey);
  if (!merges)
    throw Error(ExitCode::kModelFile, std::string("the model file holds no merges (") + kMergesKey + ")");
  merges_.reserve(merges->size());
  std::string product;
  uint32_t rank = 0;
  size_t n_skipped = 0;
  for (const std::string_view merge : *merges) {
    const size_t space = merge.find(' ', 1);
    if (space == std::string_view::npos || space + 1 == merge.size()) {
      throw Error(ExitCode::kModelFile, std::string(kMergesKey) + "[" + std::to_string(rank) + "] " +
                                            gguf::quoted(merge) + " is not two symbols with a space between");
    }
    const TokenId left = find_symbol(merge.substr(0, space));
    const TokenId right = find_symbol(merge.substr(space + 1));
    product.assign(merge.substr(0, space)).append(merge.substr(space + 1));
    const TokenId id = vocab().find(product);
    if (left == kNoToken || right == kNoToken || id == kNoToken || vocab().is_hidden(id)) {
      ++n_skipped;
    } else {
      merges_.insert(left, right, {rank, id});
    }
    ++rank;
  }
  if (n_skipped > 0)
    spdlog::debug("{} of {} merges name symbols that are no tokens: left out", n_skipped, rank);
}

TokenId BpeTokenizer::find_whole(std::string_view piece, std::string& spelled) const {
  if (piece.size() > vocab().longest_text()) return kNoToken;
  spelled.clear();
  for (const char byte : piece) append_spelled(static_cast<uint8_t>(byte), spelled);
  const TokenId id = vocab().find(spelled);
  return id != kNoToken && vocab().is_hidden(id) ? kNoToken : id;
}

void BpeTokenizer::encode_text(std::string_view text, bool, std::vector<TokenId>& ids) const {
  size_t n_lost = 0;
  const auto emit = [&](TokenId id) {
    if (id >= n_vocab()) id = vocab().unknown();
    if (id != kNoToken) {
      ids.push_back(id);
    } else {
      ++n_lost;
    }
  };
  Merger merger;
  std::string spelled;
  size_t begin = 0;
  for (const uint32_t end : pretokenize_.split(text)) {
    const std::string_view piece = text.substr(begin, end - begin);
    begin = end;
    if (ignore_merges_) {
      if (const TokenId id = find_whole(piece, spelled); id != kNoToken) {
        emit(id);
        continue;
      }
    }
    merger.clear();
    for (const char byte : piece) merger.push(0, 1, byte_ids_[static_cast<uint8_t>(byte)]);
    merger.run([&](const Symbol& left, const Symbol& right) { return merges_.find(left.id, right.id); });
    merger.for_each([&](const Symbol& symbol) { emit(symbol.id); });
  }
  if (n_lost > 0)
    spdlog::warn("{} bytes of the text have no token in the model's vocabulary: left out", n_lost);
}

std::string BpeTokenizer::normal_bytes(std::string_view text) const {
  return unspell(text);
}

std::string BpeTokenizer::decode(std::span<const TokenId> ids, bool with_special) const {
  std::string text;
  for (const TokenId id : ids) text += token_bytes(id, with_special);
  return text;
}

std::unique_ptr<Tokenizer> make_bpe_tokenizer(const gguf::Metadata& metadata,
                                              const TokenizerOptions& options) {
  const PretokenizerTraits& pretokenizer = choose_pretokenizer(metadata, options.pretokenizer);
  VocabDefaults defaults;
  defaults.add_bos = pretokenizer.add_bos;
  return std::make_unique<BpeTokenizer>(metadata, Vocab(metadata, defaults), pretokenizer);
}

}  // namespace minfer
