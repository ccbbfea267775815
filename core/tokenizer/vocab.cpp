#include "core/tokenizer/vocab.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <limits>
#include <string_view>
#include <variant>

#include "core/error.h"
#include "core/tokenizer/hash.h"

namespace minfer {
namespace {

constexpr std::string_view kTokens = "tokenizer.ggml.tokens";

[[noreturn]] void fail(const std::string& message) {
  throw Error(ExitCode::kModelFile, message);
}

// Texts by which tokens that end a turn or a text are known, whatever the file calls them: files seldom name
// more than one end token by key. The list is llama.cpp's.
constexpr std::string_view kEndTexts[] = {
    "<|eot_id|>",
    "<|eot|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|flush|>",
    "<|calls|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "<|eom_id|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "</s>",
    "<eos>",
    "<turn|>",
    "[e~[",
    "<|end_of_text|>",
    "<end_of_utterance>",
    "<｜end▁of▁sentence｜>",
};

// Fill-in-the-middle tokens: their keys (today's, and an older one), and the texts by which they are known
// where no key names them. Those that part files and repositories end a generation.
struct InfillRole {
  std::array<std::string_view, 2> keys;
  std::array<std::string_view, 7> texts;
  bool ends;
};
constexpr InfillRole kInfill[] = {
    {{"fim_pre_token_id", "prefix_token_id"},
     {"<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>", "<｜fim▁begin｜>", "<PRE>", "▁<PRE>",
      "<|code_prefix|>"},
     false},
    {{"fim_suf_token_id", "suffix_token_id"},
     {"<|fim_suffix|>", "<fim-suffix>", "<fim_suffix>", "<｜fim▁hole｜>", "<SUF>", "▁<SUF>",
      "<|code_suffix|>"},
     false},
    {{"fim_mid_token_id", "middle_token_id"},
     {"<|fim_middle|>", "<fim-middle>", "<fim_middle>", "<｜fim▁end｜>", "<MID>", "▁<MID>",
      "<|code_middle|>"},
     false},
    {{"fim_pad_token_id", ""}, {"<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"}, true},
    {{"fim_rep_token_id", ""}, {"<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"}, true},
    {{"fim_sep_token_id", ""}, {"<|file_sep|>"}, true},
};

std::string ggml_key(std::string_view name) {
  return "tokenizer.ggml." + std::string(name);
}

}  // namespace

StringIndex::Slot StringIndex::make_slot(std::string_view text, uint64_t hash) {
  Slot slot;
  slot.size = static_cast<uint32_t>(std::min<size_t>(text.size(), std::numeric_limits<uint32_t>::max()));
  slot.word = hash;
  if (text.size() <= sizeof slot.word) {
    slot.word = 0;
    if (!text.empty()) std::memcpy(&slot.word, text.data(), text.size());
  }
  return slot;
}

// The slot that holds `text`, or the free one where it belongs.
size_t StringIndex::slot_of(const std::vector<std::string_view>& texts, std::string_view text,
                            uint64_t hash) const {
  const Slot wanted = make_slot(text, hash);
  const size_t mask = slots_.size() - 1;
  for (size_t at = hash & mask;; at = (at + 1) & mask) {
    const Slot& slot = slots_[at];
    if (slot.id == kNoToken) return at;
    if (slot.word != wanted.word || slot.size != wanted.size) continue;
    if (text.size() <= sizeof slot.word || texts[static_cast<size_t>(slot.id)] == text) return at;
  }
}

void StringIndex::build(const std::vector<std::string_view>& texts) {
  slots_.assign(std::bit_ceil(texts.size() + texts.size() / 2 + 1), Slot{});
  for (size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].empty()) continue;
    const uint64_t hash = hash_bytes(texts[i]);
    Slot& slot = slots_[slot_of(texts, texts[i], hash)];
    slot = make_slot(texts[i], hash);
    slot.id = static_cast<TokenId>(i);
  }
}

TokenId StringIndex::find(const std::vector<std::string_view>& texts, std::string_view text) const {
  return slots_[slot_of(texts, text, hash_bytes(text))].id;
}

std::optional<uint8_t> byte_token_value(std::string_view text) {
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return std::nullopt;
  uint8_t value = 0;
  const char* const last = text.data() + 5;
  const auto [end, error] = std::from_chars(text.data() + 3, last, value, 16);
  if (error != std::errc() || end != last) return std::nullopt;
  return value;
}

Vocab::Vocab(const gguf::Metadata& metadata, const VocabDefaults& defaults) {
  read_tokens(metadata);
  bos_ = read_id(metadata, ggml_key("bos_token_id"), defaults.bos);
  eos_ = read_id(metadata, ggml_key("eos_token_id"), defaults.eos);
  unknown_ = read_id(metadata, ggml_key("unknown_token_id"), defaults.unknown);
  add_bos_ = read_flag(metadata, ggml_key("add_bos_token"), defaults.add_bos, bos_);
  add_eos_ = read_flag(metadata, ggml_key("add_eos_token"), defaults.add_eos, eos_);
  find_end_of_generation(metadata);
  if (unknown_ != kNoToken && type(unknown_) == TokenType::kControl) unknown_ = kNoToken;
}

void Vocab::read_tokens(const gguf::Metadata& metadata) {
  const auto tokens = metadata.get_strings(kTokens);
  if (!tokens || tokens->size() == 0)
    fail("the model file holds no vocabulary (" + std::string(kTokens) + ")");
  const size_t n = tokens->size();
  if (n > static_cast<size_t>(std::numeric_limits<TokenId>::max() / 2)) {
    fail(std::string(kTokens) + " holds " + std::to_string(n) + " tokens, more than ids can number");
  }
  texts_.assign(tokens->begin(), tokens->end());
  for (const std::string_view text : texts_) longest_text_ = std::max(longest_text_, text.size());
  index_.build(texts_);

  const auto require_one_each = [&](const char* key, size_t n_values) {
    if (n_values != n) {
      fail(ggml_key(key) + " holds " + std::to_string(n_values) + " values for " + std::to_string(n) +
           " tokens");
    }
  };
  if (auto scores = metadata.get_f32s(ggml_key("scores"))) {
    require_one_each("scores", scores->size());
    scores_ = std::move(*scores);
  }
  types_.assign(n, TokenType::kNormal);
  if (const auto types = metadata.get_i32s(ggml_key("token_type"))) {
    require_one_each("token_type", types->size());
    for (size_t i = 0; i < n; ++i) {
      const int32_t type = (*types)[i];
      types_[i] = type >= 0 && type <= static_cast<int32_t>(TokenType::kByte) ? static_cast<TokenType>(type)
                                                                              : TokenType::kUndefined;
    }
  }
}

TokenId Vocab::find_byte(uint8_t byte) const {
  constexpr char kHex[] = "0123456789ABCDEF";
  const char text[] = {'<', '0', 'x', kHex[byte >> 4], kHex[byte & 15], '>'};
  return find({text, sizeof text});
}

TokenId Vocab::read_id(const gguf::Metadata& metadata, const std::string& key, TokenId fallback) const {
  if (!contains(fallback)) fallback = kNoToken;
  const gguf::Entry* const entry = metadata.find(key);
  if (!entry) return fallback;
  // Converters write -1 for "none".
  if (const auto* number = std::get_if<int64_t>(&entry->value); number && *number == -1) return kNoToken;
  const uint64_t id = *metadata.get_u64(key);
  if (id < texts_.size()) return static_cast<TokenId>(id);
  spdlog::warn("{} is {}, but the vocabulary ends at {}: using {}", key, id, size() - 1,
               fallback == kNoToken ? std::string("none") : std::to_string(fallback));
  return fallback;
}

bool Vocab::read_flag(const gguf::Metadata& metadata, const std::string& key, bool fallback,
                      TokenId id) const {
  const bool wanted = metadata.get_bool(key).value_or(fallback);
  if (wanted && id == kNoToken) {
    spdlog::warn("{} asks for a token that the model file does not name: none is added", key);
    return false;
  }
  return wanted;
}

TokenId Vocab::find_infill_token(const gguf::Metadata& metadata, size_t role) {
  for (const std::string_view key : kInfill[role].keys) {
    if (key.empty() || !metadata.has(ggml_key(key))) continue;
    if (const TokenId id = read_id(metadata, ggml_key(key), kNoToken); id != kNoToken) return id;
  }
  for (const std::string_view text : kInfill[role].texts) {
    if (text.empty()) continue;
    if (const TokenId id = find(text); id != kNoToken) {
      types_[static_cast<size_t>(id)] = TokenType::kControl;
      return id;
    }
  }
  return kNoToken;
}

// Tokens known by their text become control tokens whatever the file says: some converters mark them as
// ordinary text, which would print them.
void Vocab::find_end_of_generation(const gguf::Metadata& metadata) {
  const auto add = [&](TokenId id) {
    if (id != kNoToken) eog_.push_back(id);
  };
  for (size_t role = 0; role < std::size(kInfill); ++role) {
    const TokenId id = find_infill_token(metadata, role);
    if (kInfill[role].ends) add(id);
  }
  for (const std::string_view text : kEndTexts) {
    const TokenId id = find(text);
    if (id == kNoToken) continue;
    if (type(id) != TokenType::kControl) {
      spdlog::debug("token {} ('{}') ends a generation but is not marked as a control token: taken as one",
                    id, text);
      types_[static_cast<size_t>(id)] = TokenType::kControl;
    }
    add(id);
  }
  add(eos_);
  add(read_id(metadata, ggml_key("eot_token_id"), kNoToken));
  add(read_id(metadata, ggml_key("eom_token_id"), kNoToken));
  std::sort(eog_.begin(), eog_.end());
  eog_.erase(std::unique(eog_.begin(), eog_.end()), eog_.end());
}

}  // namespace minfer
