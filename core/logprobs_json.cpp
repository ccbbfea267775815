#include "core/logprobs_json.h"

namespace minfer {
namespace {

nlohmann::ordered_json token_json(const Tokenizer& tokenizer, TokenId id, double logprob) {
  const std::string bytes = tokenizer.token_bytes(id, true);
  return {{"token", bytes},
          {"id", id},
          {"logprob", logprob},
          {"bytes", std::vector<uint8_t>(bytes.begin(), bytes.end())}};
}

}  // namespace

nlohmann::ordered_json logprobs_json(const Tokenizer& tokenizer, const std::vector<TokenLogprobs>& logprobs) {
  auto all = nlohmann::ordered_json::array();
  for (const TokenLogprobs& of_token : logprobs) {
    auto entry = token_json(tokenizer, of_token.id, of_token.logprob);
    auto top = nlohmann::ordered_json::array();
    for (const auto& [id, logprob] : of_token.top) top.push_back(token_json(tokenizer, id, logprob));
    entry["top_logprobs"] = std::move(top);
    all.push_back(std::move(entry));
  }
  return all;
}

}  // namespace minfer
