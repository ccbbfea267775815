#include "core/tokenizer/vocab_tokenizer.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/error.h"

namespace minfer {
namespace {

// Offsets and sizes of symbols are 32 bits, and SentencePiece triples spaces.
constexpr size_t kMaxTextBytes = size_t{1} << 29;

template <typename Keep>
std::vector<TokenId> select(const Vocab& vocab, const Keep& keep) {
  std::vector<TokenId> ids;
  for (TokenId id = 0; id < vocab.size(); ++id) {
    if (keep(vocab.type(id))) ids.push_back(id);
  }
  return ids;
}

bool is_special_type(TokenType type) {
  return type == TokenType::kControl || type == TokenType::kUnknown || type == TokenType::kUserDefined;
}

}  // namespace

VocabTokenizer::VocabTokenizer(Vocab vocab)
    : vocab_(std::move(vocab)),
      user_defined_(vocab_, select(vocab_, [](TokenType type) { return type == TokenType::kUserDefined; })),
      all_special_(vocab_, select(vocab_, is_special_type)) {}

bool VocabTokenizer::is_special(TokenId id) const {
  return vocab_.contains(id) && is_special_type(vocab_.type(id));
}

std::vector<TokenId> VocabTokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  if (text.size() > kMaxTextBytes) {
    throw Error(ExitCode::kUsage, "a text of " + std::to_string(text.size()) + " bytes is longer than the " +
                                      std::to_string(kMaxTextBytes) + " that can be tokenized at once");
  }
  std::vector<TokenId> ids;
  const SpecialSplitter& splitter = options.parse_special ? all_special_ : user_defined_;
  size_t from = 0;
  for (const SpecialMatch& match : splitter.split(text, options.literal)) {
    if (match.begin > from)
      encode_text(text.substr(from, match.begin - from), options.continues && from == 0, ids);
    ids.push_back(match.id);
    from = match.begin + vocab_.text(match.id).size();
  }
  if (from < text.size()) encode_text(text.substr(from), options.continues && from == 0, ids);

  if (!options.add_special) return ids;
  const bool has_eos = !ids.empty() && ids.back() == vocab_.eos();
  const bool has_bos = !ids.empty() && ids.front() == vocab_.bos();
  if (vocab_.add_eos() && !has_eos) ids.push_back(vocab_.eos());
  if (vocab_.add_bos() && !has_bos) ids.insert(ids.begin(), vocab_.bos());
  return ids;
}

std::string VocabTokenizer::token_bytes(TokenId id, bool with_special) const {
  if (!vocab_.contains(id) || (vocab_.is_hidden(id) && !with_special)) return {};
  const std::string_view text = vocab_.text(id);
  switch (vocab_.type(id)) {
    case TokenType::kNormal:
      return normal_bytes(text);
    case TokenType::kByte:
      if (const auto byte = byte_token_value(text)) return std::string(1, static_cast<char>(*byte));
      return {};
    case TokenType::kControl:
    case TokenType::kUnknown:
    case TokenType::kUserDefined:
      return std::string(text);
    case TokenType::kUnused:
    case TokenType::kUndefined:
      break;
  }
  return {};
}

bool VocabTokenizer::is_eog(TokenId id) const {
  return std::binary_search(vocab_.eog().begin(), vocab_.eog().end(), id);
}

}  // namespace minfer
