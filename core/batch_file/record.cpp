#include "core/batch_file/record.h"

#include <spdlog/fmt/fmt.h>

#include <cmath>

#include "core/json_line.h"
#include "core/logprobs_json.h"
#include "core/utf8.h"

namespace minfer {
namespace {

using Json = nlohmann::ordered_json;

// What a record begins with. Without an id that could be used, the line tells which request it is.
Json begin_record(const BatchRequest& request) {
  Json record;
  if (request.is_openai) record["id"] = fmt::format("batch_req_{}", request.number);
  record[request.is_openai ? "custom_id" : "id"] = request.id;
  if (request.id.is_null()) record["line"] = request.number;
  return record;
}

double milliseconds(double seconds) {
  return std::round(seconds * 1e6) / 1e3;
}

// How much was reused depends on what ran beside it.
Json timings_json(const RequestResult& result) {
  return {{"queue_ms", milliseconds(result.queue_seconds)},
          {"prefill_ms", milliseconds(result.generation.prefill_seconds)},
          {"decode_ms", milliseconds(result.generation.decode_seconds)},
          {"reused_tokens", result.generation.n_reused}};
}

Json usage_json(const Generation& run) {
  const auto n_generated = static_cast<int32_t>(run.ids.size());
  return {{"prompt_tokens", run.n_prompt},
          {"completion_tokens", n_generated},
          {"total_tokens", run.n_prompt + n_generated}};
}

// How the text completions API spells a token: tokens that are no whole characters by their bytes, since they
// are keys, which have to differ.
std::string token_key(const Tokenizer& tokenizer, TokenId id) {
  const std::string bytes = tokenizer.token_bytes(id, true);
  for (size_t at = 0; at < bytes.size();) {
    const int size = utf8_char_size(std::string_view(bytes).substr(at));
    if (size <= 0) {
      std::string key = "bytes:";
      for (const char c : bytes) key += fmt::format("\\x{:02x}", static_cast<uint8_t>(c));
      return key;
    }
    at += static_cast<size_t>(size);
  }
  return bytes;
}

Json text_logprobs_json(const Tokenizer& tokenizer, const std::vector<TokenLogprobs>& logprobs) {
  Json out = {{"tokens", Json::array()}, {"token_logprobs", Json::array()}, {"top_logprobs", Json::array()}};
  for (const TokenLogprobs& of_token : logprobs) {
    out["tokens"].push_back(token_key(tokenizer, of_token.id));
    out["token_logprobs"].push_back(of_token.logprob);
    Json top = Json::object();
    for (const auto& [id, logprob] : of_token.top) top.emplace(token_key(tokenizer, id), logprob);
    out["top_logprobs"].push_back(std::move(top));
  }
  return out;
}

// What both forms tell beside the text.
void add_details(Json& record, const BatchRequest& request, const RequestResult& result) {
  record["usage"] = usage_json(result.generation);
  if (request.options.sampling.temp > 0) record["seed"] = request.options.sampling.seed;
  if (result.generation.n_near_ties > 0) record["near_ties"] = result.generation.n_near_ties;
  record["timings"] = timings_json(result);
}

Json openai_choice(const BatchRequest& request, const RequestResult& result, const Tokenizer& tokenizer) {
  const bool is_chat = !request.messages.is_null();
  const auto& logprobs = result.generation.logprobs;
  Json choice = {{"index", 0}};
  if (is_chat) {
    choice["message"] = {{"role", "assistant"}, {"content", result.text}};
  } else {
    choice["text"] = result.text;
  }
  choice["logprobs"] = nullptr;
  if (request.options.n_logprobs && is_chat)
    choice["logprobs"]["content"] = logprobs_json(tokenizer, logprobs);
  if (request.options.n_logprobs && !is_chat) choice["logprobs"] = text_logprobs_json(tokenizer, logprobs);
  choice["finish_reason"] = finish_reason_code(result.generation.reason);
  return choice;
}

Json openai_body(const BatchRequest& request, const RequestResult& result, const Tokenizer& tokenizer,
                 const std::string& model) {
  const bool is_chat = !request.messages.is_null();
  Json body = {{"id", fmt::format("{}-{}", is_chat ? "chatcmpl" : "cmpl", request.number)},
               {"object", is_chat ? "chat.completion" : "text_completion"},
               {"created", 0},
               {"model", model}};
  body["choices"].push_back(openai_choice(request, result, tokenizer));
  add_details(body, request, result);
  return body;
}

}  // namespace

std::string answer_record(const BatchRequest& request, const RequestResult& result,
                          const Tokenizer& tokenizer, const std::string& model) {
  Json record = begin_record(request);
  if (request.is_openai) {
    record["response"] = {{"status_code", 200}, {"request_id", fmt::format("req_{}", request.number)}};
    record["response"]["body"] = openai_body(request, result, tokenizer, model);
    record["error"] = nullptr;
    return json_line(record);
  }
  record["text"] = result.text;
  record["finish_reason"] = finish_reason_code(result.generation.reason);
  if (request.options.n_logprobs) record["logprobs"] = logprobs_json(tokenizer, result.generation.logprobs);
  add_details(record, request, result);
  return json_line(record);
}

std::string error_record(const BatchRequest& request, const std::string& code, const std::string& message) {
  Json record = begin_record(request);
  if (request.is_openai) {
    record["response"] = nullptr;
    record["error"] = {{"code", code}, {"message", message}};
  } else {
    record["error"] = message;
  }
  return json_line(record);
}

std::string record_head(const BatchRequest& request) {
  std::string head = json_line(begin_record(request));
  head.resize(head.size() - 2);  // "}\n"
  return head + ",";
}

}  // namespace minfer
