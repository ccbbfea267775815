#include "core/batch_file/request_options.h"

#include <spdlog/fmt/fmt.h>

#include <charconv>

#include "core/error.h"
#include "gguf/error.h"

namespace minfer {
namespace {

using Json = nlohmann::ordered_json;

// Fields that would change the answer in ways that are not supported, with the values (a JSON array) that do
// not.
struct Unsupported {
  const char* name;
  const char* harmless;
};
constexpr Unsupported kUnsupported[] = {
    {"n", "[1]"},
    {"best_of", "[1]"},
    {"stream", "[false]"},
    {"echo", "[false]"},
    {"suffix", R"([""])"},
    {"response_format", R"([{"type":"text"}])"},
    {"modalities", R"([["text"]])"},
    {"tool_choice", R"(["auto","none"])"},
    {"functions", "[[]]"},
    {"function_call", R"(["auto","none"])"},
    {"audio", "[]"},
    {"use_beam_search", "[false]"},
    {"stop_token_ids", "[[]]"},
    {"min_tokens", "[0]"},
    {"bad_words", "[[]]"},
    {"prompt_logprobs", "[]"},
    {"prompt_embeds", "[]"},
    {"continue_final_message", "[false]"},
    {"chat_template", "[]"},
    {"grammar", R"([""])"},
    {"json_schema", "[]"},
    {"structured_outputs", "[]"},
    {"guided_json", "[]"},
    {"guided_regex", "[]"},
    {"guided_choice", "[]"},
    {"guided_grammar", "[]"},
};

// Fields that describe the request, and nothing of its answer here.
constexpr const char* kWithoutEffect[] = {
    "model",        "user",           "metadata",          "store",
    "service_tier", "stream_options", "safety_identifier", "prompt_cache_key",
    "cache_prompt"};

void refuse_unsupported(Fields& body) {
  for (const Unsupported& field : kUnsupported) {
    const Json* value = body.find(field.name);
    if (value == nullptr) continue;
    const Json harmless = Json::parse(field.harmless);
    if (std::find(harmless.begin(), harmless.end(), *value) != harmless.end()) continue;
    std::string allowed;
    for (const Json& other : harmless) allowed += (allowed.empty() ? "only " : " or ") + other.dump();
    refuse_field(field.name, *value, allowed.empty() ? "supported" : "supported, " + allowed);
  }
  for (const char* name : kWithoutEffect) body.find(name);
}

void read_logit_bias(Fields& body, SamplerOptions& sampling) {
  const Json* biases = body.find("logit_bias");
  if (biases == nullptr) return;
  if (!biases->is_object()) refuse_field("logit_bias", *biases, "an object of token ids and numbers");
  sampling.logit_bias.clear();
  for (const auto& [key, bias] : biases->items()) {
    TokenId id = 0;
    const auto [end, fault] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (fault != std::errc() || end != key.data() + key.size() || id < 0) {
      throw Error(ExitCode::kUsage, "logit_bias: " + gguf::quoted(key) + " is not a token id");
    }
    if (!bias.is_number()) refuse_field("logit_bias: " + key, bias, "a number");
    sampling.logit_bias.emplace_back(id, bias.get<double>());
  }
}

// logprobs is a switch in chats, with top_logprobs beside it, and a number in text completions.
void read_logprobs(Fields& body, std::optional<int32_t>& n_logprobs) {
  int32_t n_top = 0;
  const bool has_top = body.read("top_logprobs", n_top, kLogprobsRange);
  const Json* wanted = body.find("logprobs");
  if (wanted != nullptr && wanted->is_boolean()) {
    n_logprobs.reset();
    if (wanted->get<bool>()) n_logprobs = n_top;
  } else if (wanted != nullptr) {
    n_logprobs = as_integer(*wanted, kLogprobsRange);
    if (!n_logprobs) {
      refuse_field("logprobs", *wanted,
                   fmt::format("true, false or a whole number from {} to {}", kLogprobsRange.lowest,
                               kLogprobsRange.highest));
    }
  }
  if (has_top && n_top > 0 && (wanted == nullptr || *wanted != true)) {
    throw Error(ExitCode::kUsage, "top_logprobs: needs logprobs to be true");
  }
}

void read_sampling(Fields& body, BatchRequest& request) {
  SamplerOptions& sampling = request.options.sampling;
  body.read("temperature", sampling.temp, kTempRange);
  int32_t top_k = sampling.top_k;
  body.read("top_k", top_k, {-1, kTopKRange.highest});  // others write -1 for all
  sampling.top_k = std::max(top_k, 0);
  body.read("top_p", sampling.top_p, kTopPRange);
  body.read("min_p", sampling.min_p, kMinPRange);
  for (const char* name : {"repeat_penalty", "repetition_penalty"}) {
    body.read(name, sampling.repeat_penalty, kRepeatPenaltyRange);
  }
  body.read("repeat_last_n", sampling.repeat_last_n, kRepeatLastNRange);
  body.read("presence_penalty", sampling.presence_penalty, kPresencePenaltyRange);
  body.read("frequency_penalty", sampling.frequency_penalty, kFrequencyPenaltyRange);
  read_logit_bias(body, sampling);
  request.has_seed = body.read("seed", sampling.seed);
}

void read_template_variables(Fields& body, BatchRequest& request) {
  body.read("add_generation_prompt", request.add_generation_prompt);
  if (const Json* kwargs = body.find("chat_template_kwargs")) {
    if (!kwargs->is_object()) refuse_field("chat_template_kwargs", *kwargs, "an object");
    request.template_variables = *kwargs;
  }
  for (const char* name : {"tools", "documents"}) {
    const Json* value = body.find(name);
    if (value == nullptr) continue;
    if (!value->is_array()) refuse_field(name, *value, "an array");
    if (!value->empty()) request.template_variables[name] = *value;
  }
  body.find("parallel_tool_calls");  // tool calls are left in the text, as the model writes them
}

std::string text_of_parts(const Json& parts, const std::string& where) {
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::string part = fmt::format("{}[{}]", where, i);
    if (!parts[i].is_object()) refuse_field(part, parts[i], "an object with type and text");
    Fields fields(parts[i]);
    std::string type, words;
    if (!fields.read("type", type) || type != "text")
      refuse_field(part, parts[i], "a text part; no others are supported");
    if (!fields.read("text", words)) refuse_field(part, parts[i], "an object with type and text");
    text += (i == 0 ? "" : "\n") + words;
  }
  return text;
}

Json read_message(const Json& message, const std::string& where) {
  if (!message.is_object()) refuse_field(where, message, "an object with role and content");
  Fields fields(message);
  std::string role;
  if (!fields.read("role", role)) throw Error(ExitCode::kUsage, where + ": has no role");
  Json out = message;
  const Json* content = fields.find("content");
  if (content == nullptr) {
    if (fields.find("tool_calls") == nullptr) throw Error(ExitCode::kUsage, where + ": has no content");
  } else if (content->is_array()) {
    out["content"] = text_of_parts(*content, where + ".content");
  } else if (!content->is_string()) {
    refuse_field(where + ".content", *content, "a text or an array of text parts");
  }
  return out;
}

}  // namespace

void read_request_options(Fields& body, BatchRequest& request) {
  refuse_unsupported(body);
  for (const char* name : {"max_tokens", "max_completion_tokens", "n_predict"}) {
    body.read(name, request.options.n_predict, kNPredictRange);
  }
  body.read("stop", request.options.stop);
  body.read("ignore_eos", request.options.ignore_eos);
  read_sampling(body, request);
  read_logprobs(body, request.options.n_logprobs);
  read_template_variables(body, request);
}

Json read_messages(const Json& messages) {
  if (!messages.is_array() || messages.empty()) refuse_field("messages", messages, "an array of messages");
  Json out = Json::array();
  for (size_t i = 0; i < messages.size(); ++i) {
    out.push_back(read_message(messages[i], fmt::format("messages[{}]", i)));
  }
  return out;
}

}  // namespace minfer
