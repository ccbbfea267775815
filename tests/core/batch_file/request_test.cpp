#include "core/batch_file/request.h"

#include "tests/support/catch.h"

using namespace minfer;

namespace {

BatchFile parse(std::string_view lines, BatchFormat format = BatchFormat::kJsonLines,
                const GenerateOptions& defaults = {}) {
  return parse_batch(split_batch(lines, format, "|"), format, defaults);
}

BatchRequest parse_one(std::string_view line, const GenerateOptions& defaults = {}) {
  const BatchFile file = parse(line, BatchFormat::kJsonLines, defaults);
  REQUIRE(file.requests.size() == 1);
  return file.requests.front();
}

// The error of a plain request with this in it.
std::string error_of(const std::string& fields) {
  return parse_one(R"({"id":"x","prompt":"p",)" + fields + "}").error;
}

std::string chat_error(const std::string& messages) {
  return parse_one(R"({"id":"x","messages":)" + messages + "}").error;
}

}  // namespace

TEST_CASE("batch request: every option of a body", "[batch]") {
  const BatchRequest r = parse_one(
      R"({"custom_id":"a","method":"POST","url":"/v1/completions","body":{"model":"m","prompt":"p","max_tokens":7,)"
      R"("temperature":0.5,"top_k":-1,"top_p":0.9,"min_p":0.1,"repetition_penalty":1.1,"repeat_last_n":-1,)"
      R"("presence_penalty":0.2,"frequency_penalty":-0.3,"seed":18446744073709551615,"stop":["x","yz"],)"
      R"("logit_bias":{"5":-100,"6":1.5},"logprobs":3,"ignore_eos":true,"n":1,"stream":false,"user":"u"}})");
  CHECK(r.error.empty());
  CHECK(r.is_openai);
  CHECK(r.id == "a");
  CHECK(r.prompt == "p");
  CHECK(r.messages.is_null());
  const SamplerOptions& s = r.options.sampling;
  CHECK(r.options.n_predict == 7);
  CHECK(r.options.stop == std::vector<std::string>{"x", "yz"});
  CHECK(r.options.ignore_eos);
  CHECK(r.options.n_logprobs == 3);
  CHECK(s.temp == 0.5);
  CHECK(s.top_k == 0);
  CHECK(s.top_p == 0.9);
  CHECK(s.min_p == 0.1);
  CHECK(s.repeat_penalty == 1.1);
  CHECK(s.repeat_last_n == -1);
  CHECK(s.presence_penalty == 0.2);
  CHECK(s.frequency_penalty == -0.3);
  CHECK(r.has_seed);
  CHECK(s.seed == 18446744073709551615u);
  CHECK(s.logit_bias == std::vector<std::pair<TokenId, double>>{{5, -100.0}, {6, 1.5}});
}

TEST_CASE("batch request: what a request does not set is as the flags say", "[batch]") {
  GenerateOptions defaults;
  defaults.n_predict = 3;
  defaults.stop = {"END"};
  defaults.n_logprobs = 2;
  defaults.sampling.temp = 0.25;
  const BatchRequest kept =
      parse_one(R"({"prompt":"p","max_tokens":null,"stop":null,"seed":null})", defaults);
  CHECK(kept.options.n_predict == 3);
  CHECK(kept.options.stop == defaults.stop);
  CHECK(kept.options.n_logprobs == 2);
  CHECK(kept.options.sampling.temp == 0.25);
  CHECK_FALSE(kept.has_seed);
  const BatchRequest set = parse_one(
      R"({"prompt":"p","max_completion_tokens":9,"stop":"x","logprobs":false,"temperature":0})", defaults);
  CHECK(set.options.n_predict == 9);
  CHECK(set.options.stop == std::vector<std::string>{"x"});
  CHECK_FALSE(set.options.n_logprobs);
  CHECK(set.options.sampling.temp == 0);
}

TEST_CASE("batch request: ids are texts or whole numbers, and kept as they are", "[batch]") {
  const auto file = parse(
      "{\"id\":1,\"prompt\":\"p\"}\n\n{\"id\":\"1\",\"prompt\":\"p\"}\n{\"prompt\":\"p\"}\n"
      "{\"id\":1,\"prompt\":\"p\"}\n{\"id\":1.5,\"prompt\":\"p\"}\n{\"id\":null,\"prompt\":\"p\"}\n");
  REQUIRE(file.requests.size() == 6);
  const auto& r = file.requests;
  CHECK(r[0].id == 1);
  CHECK(r[1].id == "1");
  CHECK(r[2].id == 4);  // the line's number
  CHECK(r[2].error.empty());
  CHECK(r[3].id == 1);
  CHECK(r[3].error == "id: '1' is the id of line 1 too");
  CHECK(r[4].id.is_null());
  CHECK(r[4].error == "id: '1.5' is not a text or a whole number");
  CHECK(r[5].id == 7);
  CHECK(parse_one(R"({"custom_id":"a","body":{"prompt":"p"},"method":"GET"})").id == "a");
  CHECK(parse_one(R"({"body":{"prompt":"p"}})").error == "has no custom_id");
}

TEST_CASE("batch request: a value of the wrong type or out of range is named with what is allowed",
          "[batch]") {
  CHECK(error_of(R"("temperature":"hot")") == "temperature: '\"hot\"' is not a number from 0 to 1000");
  CHECK(error_of(R"("temperature":-0.5)") == "temperature: '-0.5' is not a number from 0 to 1000");
  CHECK(error_of(R"("top_p":1.5)") == "top_p: '1.5' is not a number from 0 to 1");
  CHECK(error_of(R"("max_tokens":1.5)") == "max_tokens: '1.5' is not a whole number from -1 to 2147483647");
  CHECK(error_of(R"("max_tokens":4294967297)") ==
        "max_tokens: '4294967297' is not a whole number from -1 to 2147483647");
  CHECK(error_of(R"("max_tokens":18446744073709551615)").find("whole number") != std::string::npos);
  CHECK(error_of(R"("seed":-1)").find("seed: '-1'") == 0);
  CHECK(error_of(R"("stop":"")").find("stop: ") == 0);
  CHECK(error_of(R"("stop":[1])").find("stop: ") == 0);
  CHECK(error_of(R"("ignore_eos":1)") == "ignore_eos: '1' is not true or false");
  CHECK(error_of(R"("logit_bias":[1])").find("logit_bias: ") == 0);
  CHECK(error_of(R"("logit_bias":{"x":1})") == "logit_bias: 'x' is not a token id");
  CHECK(error_of(R"("logit_bias":{"-1":1})") == "logit_bias: '-1' is not a token id");
  CHECK(error_of(R"("logit_bias":{"1":"2"})") == "logit_bias: 1: '\"2\"' is not a number");
  CHECK(error_of(R"("logprobs":"yes")").find("logprobs: ") == 0);
  CHECK(error_of(R"("top_logprobs":2)") == "top_logprobs: needs logprobs to be true");
  CHECK(error_of(R"("logprobs":true,"top_logprobs":2)").empty());
  CHECK(error_of(R"("tools":{})") == "tools: '{}' is not an array");
}

TEST_CASE("batch request: what would change the answer and is not supported is refused", "[batch]") {
  CHECK(error_of(R"("n":2)") == "n: '2' is not supported, only 1");
  CHECK(error_of(R"("stream":true)") == "stream: 'true' is not supported, only false");
  CHECK(error_of(R"("response_format":{"type":"json_object"})").find("response_format: ") == 0);
  CHECK(error_of(R"("response_format":{"type":"text"})").empty());
  CHECK(error_of(R"("tool_choice":"required")") ==
        "tool_choice: '\"required\"' is not supported, only \"auto\" or \"none\"");
  CHECK(error_of(R"("grammar":"root ::= x")").find("grammar: ") == 0);
  CHECK(error_of(R"("guided_json":{"a":1})") == "guided_json: '{\"a\":1}' is not supported");
  CHECK(error_of(R"("n":null,"stream":false,"tool_choice":"auto")").empty());
}

TEST_CASE("batch request: unknown fields are collected, once a name", "[batch]") {
  const auto file = parse(
      "{\"id\":\"a\",\"prompt\":\"p\",\"foo\":1}\n{\"id\":\"b\",\"prompt\":\"p\",\"foo\":2}\n"
      "{\"custom_id\":\"c\",\"bar\":1,\"body\":{\"prompt\":\"p\",\"baz\":1,\"model\":\"m\"}}\n");
  CHECK(file.ignored_fields == std::set<std::string>{"bar", "baz", "foo"});
  for (const BatchRequest& request : file.requests) CHECK(request.error.empty());
}

TEST_CASE("batch request: messages, with text parts joined", "[batch]") {
  const BatchRequest r = parse_one(
      R"({"id":"a","messages":[{"role":"system","content":"s"},)"
      R"({"role":"user","name":"n","content":[{"type":"text","text":"one"},{"type":"text","text":"two"}]},)"
      R"({"role":"assistant","content":null,"tool_calls":[]}],"tools":[{"x":1}],)"
      R"("chat_template_kwargs":{"enable_thinking":false},"add_generation_prompt":false})");
  CHECK(r.error.empty());
  CHECK(r.messages[0]["content"] == "s");
  CHECK(r.messages[1]["content"] == "one\ntwo");
  CHECK(r.messages[1]["name"] == "n");
  CHECK(r.template_variables.dump() == R"({"enable_thinking":false,"tools":[{"x":1}]})");
  CHECK_FALSE(r.add_generation_prompt);
  CHECK(chat_error("[]") == "messages: '[]' is not an array of messages");
  CHECK(chat_error("\"hi\"").find("messages: ") == 0);
  CHECK(chat_error("[1]") == "messages[0]: '1' is not an object with role and content");
  CHECK(chat_error(R"([{"content":"x"}])") == "messages[0]: has no role");
  CHECK(chat_error(R"([{"role":"user"}])") == "messages[0]: has no content");
  CHECK(chat_error(R"([{"role":"user","content":3}])").find("messages[0].content: '3'") == 0);
  CHECK(chat_error(R"([{"role":"user","content":[{"type":"image_url","image_url":{}}]}])")
            .find("messages[0].content[0]: ") == 0);
}

TEST_CASE("batch request: one question, at the address that answers it", "[batch]") {
  const auto error = [](const std::string& rest) {
    return parse_one(R"({"custom_id":"a",)" + rest + "}").error;
  };
  CHECK(error(R"("body":{"prompt":"p","messages":[]})") == "messages and prompt: one of them at a time");
  CHECK(error(R"("body":{})") == "has neither messages nor prompt");
  CHECK(error(R"("body":{"prompt":""})") == "the prompt is empty");
  CHECK(error(R"("body":{"prompt":["p"]})") == "prompt: '[\"p\"]' is not a text");
  CHECK(error(R"("body":7)") == "body: '7' is not an object");
  CHECK(error(R"("url":"/v1/completions")") == "has no body");
  CHECK(error(R"("url":"/v1/chat/completions","body":{"prompt":"p"})") ==
        "prompt: belongs to /v1/completions");
  CHECK(error(R"("url":"/v1/embeddings","body":{"prompt":"p"})").find("url: '/v1/embeddings'") == 0);
  CHECK(error(R"("method":"GET","body":{"prompt":"p"})") == "method: 'GET' is not POST");
}

TEST_CASE("batch request: a line that is no JSON object", "[batch]") {
  const auto refused = [](std::string_view line) {
    const BatchRequest r = parse_one(line);
    CHECK(r.id.is_null());
    CHECK(r.number == 1);
    return r.error;
  };
  CHECK(refused("nonsense").find("not JSON") == 0);
  CHECK(refused(R"({"id":"a","prompt":"p")").find("not JSON") == 0);
  CHECK(refused(R"({"id":"a","prompt":1e999})").find("a number that is too large") == 0);
  CHECK(refused("[1]") == "not a JSON object, but array");
  CHECK(refused("{\"prompt\":\"\xff\"}") == "invalid UTF-8 at byte 12");
  CHECK(refused("{\"prompt\":\"\xe2\x82").find("invalid UTF-8") == 0);
  CHECK(refused(std::string(1000000, '[')) == "nested deeper than 100");
  CHECK(refused(std::string_view("{\0}", 3)).find("not JSON") == 0);
}

TEST_CASE("batch request: an unreadable line takes the form that the file begins with", "[batch]") {
  const std::string openai = R"({"custom_id":"a","body":{"prompt":"p"}})",
                    plain = R"({"id":"b","prompt":"p"})";
  CHECK(parse("nonsense\n" + openai + "\n" + plain).requests[0].is_openai);
  CHECK_FALSE(parse("nonsense\n" + plain + "\n" + openai).requests[0].is_openai);
  CHECK_FALSE(parse("nonsense\n").requests[0].is_openai);
}

TEST_CASE("batch request: plain text is the prompt, its number the id", "[batch]") {
  const auto file = parse("a\xff|{\"id\":3}||b", BatchFormat::kDelimited);
  REQUIRE(file.requests.size() == 4);
  CHECK(file.requests[0].id == 1);
  CHECK(file.requests[0].error == "invalid UTF-8 at byte 2");
  CHECK(file.requests[1].prompt == "{\"id\":3}");
  CHECK(file.requests[1].error.empty());
  CHECK(file.requests[2].error == "the prompt is empty");
  CHECK(file.requests[3].id == 4);
}

TEST_CASE("batch request: every beginning of a line is a request or an error", "[batch]") {
  const std::string line =
      R"({"custom_id":"a","url":"/v1/chat/completions","body":{"messages":[{"role":"user","content":"é"}],"n":1}})";
  for (size_t n = 1; n < line.size(); ++n) CHECK_FALSE(parse_one(line.substr(0, n)).error.empty());
  CHECK(parse_one(line).error.empty());
}
