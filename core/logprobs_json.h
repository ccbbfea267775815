// Logprobs in the form of OpenAI's chat completions, with the token's id besides.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "core/sampler.h"
#include "core/tokenizer/tokenizer.h"

namespace minfer {

// [{"token", "id", "logprob", "bytes", "top_logprobs": [{"token", "id", "logprob", "bytes"}, ...]}, ...]; the
// token's text need not be whole characters: json_line() replaces what is not, and "bytes" has all of it.
nlohmann::ordered_json logprobs_json(const Tokenizer& tokenizer, const std::vector<TokenLogprobs>& logprobs);

}  // namespace minfer
