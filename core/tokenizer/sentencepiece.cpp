#include "core/tokenizer/sentencepiece.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>

#include "core/tokenizer/hash.h"
#include "core/utf8.h"

namespace minfer {
namespace {

constexpr std::string_view kEscapedSpace = "\xe2\x96\x81";  // U+2581
constexpr const char* kSpacePrefixKey = "tokenizer.ggml.add_space_prefix";

// Higher scores get lower ranks. An IEEE float's bits order like an integer's once negatives are flipped.
uint32_t rank_of(float score) {
  const auto bits = std::bit_cast<uint32_t>(score + 0.0f);  // -0 and 0 are one score
  const uint32_t ascending = (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
  return ~ascending;
}

// Bytes of the first symbol of `text`: a character, or a byte that begins none, so that bytes survive.
size_t first_size(std::string_view text) {
  return static_cast<size_t>(std::max(1, utf8_char_size(text)));
}

size_t pair_bit(std::string_view left, std::string_view right) {
  return hash_word((hash_bytes(left) << 1) ^ hash_bytes(right)) % SentencePieceTokenizer::kPairBits;
}

std::string escape_spaces(std::string_view text, bool add_prefix) {
  std::string out;
  out.reserve(text.size() + kEscapedSpace.size() +
              static_cast<size_t>(std::count(text.begin(), text.end(), ' ')) * (kEscapedSpace.size() - 1));
  if (add_prefix) out += kEscapedSpace;
  for (const char c : text) {
    if (c == ' ') {
      out += kEscapedSpace;
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

SentencePieceTokenizer::SentencePieceTokenizer(const gguf::Metadata& metadata, Vocab vocab)
    : VocabTokenizer(std::move(vocab)), add_space_prefix_(metadata.get_bool(kSpacePrefixKey).value_or(true)) {
  for (TokenId id = 0; id < n_vocab(); ++id) {
    const std::string_view text = this->vocab().text(id);
    if (text.empty()) continue;
    for (size_t at = first_size(text), previous = 0; at < text.size();) {
      const size_t size = first_size(text.substr(at));
      pairs_.set(pair_bit(text.substr(previous, at - previous), text.substr(at, size)));
      previous = at;
      at += size;
    }
  }
  for (size_t byte = 0; byte < 256; ++byte) {
    TokenId id = this->vocab().find_byte(static_cast<uint8_t>(byte));
    if (id == kNoToken) {
      const char raw = static_cast<char>(byte);
      id = find_piece({&raw, 1});
    }
    byte_ids_[byte] = id != kNoToken ? id : this->vocab().unknown();
  }
}

// Plain text never becomes a control, unknown or byte token by its spelling.
TokenId SentencePieceTokenizer::find_piece(std::string_view text) const {
  if (text.size() > vocab().longest_text()) return kNoToken;
  const TokenId id = vocab().find(text);
  if (id == kNoToken || vocab().is_hidden(id) || vocab().type(id) == TokenType::kByte) return kNoToken;
  return id;
}

void SentencePieceTokenizer::encode_text(std::string_view text, bool continues,
                                         std::vector<TokenId>& ids) const {
  const std::string escaped = escape_spaces(text, add_space_prefix_ && !continues);
  const std::string_view all = escaped;
  Merger merger;
  size_t n_lost = 0;
  size_t begin = 0;
  for (size_t previous = 0, at = first_size(all); at < all.size();) {
    const size_t size = first_size(all.substr(at));
    if (!pairs_.test(pair_bit(all.substr(previous, at - previous), all.substr(at, size)))) {
      n_lost += encode_stretch(all, begin, at, merger, ids);
      begin = at;
    }
    previous = at;
    at += size;
  }
  n_lost += encode_stretch(all, begin, all.size(), merger, ids);
  if (n_lost > 0)
    spdlog::warn("{} bytes of the text have no token in the model's vocabulary: left out", n_lost);
}

size_t SentencePieceTokenizer::encode_stretch(std::string_view text, size_t begin, size_t end, Merger& merger,
                                              std::vector<TokenId>& ids) const {
  size_t n_lost = 0;
  merger.clear();
  for (size_t at = begin; at < end;) {
    const size_t size = first_size(text.substr(at));
    merger.push(static_cast<uint32_t>(at), static_cast<uint32_t>(size), find_piece(text.substr(at, size)));
    at += size;
  }
  merger.run([&](const Symbol& left, const Symbol& right) -> Merge {
    const TokenId id = find_piece(text.substr(left.begin, left.size + right.size));
    return {id == kNoToken ? 0 : rank_of(vocab().score(id)), id};
  });
  merger.for_each([&](const Symbol& symbol) {
    if (symbol.id != kNoToken) {
      ids.push_back(symbol.id);
      return;
    }
    for (const char byte : text.substr(symbol.begin, symbol.size)) {
      const TokenId id = byte_ids_[static_cast<uint8_t>(byte)];
      if (id != kNoToken) {
        ids.push_back(id);
      } else {
        ++n_lost;
      }
    }
  });
  return n_lost;
}

std::string SentencePieceTokenizer::normal_bytes(std::string_view text) const {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    if (text.substr(at, kEscapedSpace.size()) == kEscapedSpace) {
      out += ' ';
      at += kEscapedSpace.size();
    } else {
      out += text[at++];
    }
  }
  return out;
}

std::string SentencePieceTokenizer::decode(std::span<const TokenId> ids, bool with_special) const {
  std::string text;
  bool starts = add_space_prefix_;  // the next text token begins with the space that encode put there
  for (const TokenId id : ids) {
    const std::string bytes = token_bytes(id, with_special);
    if (is_special(id)) {
      text += bytes;
      starts = add_space_prefix_;
      continue;
    }
    text += std::string_view(bytes).substr(starts && bytes.starts_with(' ') ? 1 : 0);
    if (!bytes.empty()) starts = false;
  }
  return text;
}

std::unique_ptr<Tokenizer> make_sentencepiece_tokenizer(const gguf::Metadata& metadata) {
  VocabDefaults defaults;
  defaults.bos = 1;
  defaults.eos = 2;
  defaults.unknown = 0;
  defaults.add_bos = true;
  return std::make_unique<SentencePieceTokenizer>(metadata, Vocab(metadata, defaults));
}

}  // namespace minfer
