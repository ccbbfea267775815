#include "core/batch_file/record.h"

#include "core/batch_file/resume.h"
#include "core/error.h"
#include "tests/support/catch.h"
#include "tests/support/tiny_vocab.h"

using namespace minfer;
using namespace minfer::test;
using Json = nlohmann::ordered_json;

namespace {

std::vector<BatchRequest> requests(std::string_view lines) {
  return parse_batch(split_batch(lines, BatchFormat::kJsonLines), BatchFormat::kJsonLines, {}).requests;
}

RequestResult answer(const std::string& text) {
  RequestResult result;
  result.text = text;
  result.queue_seconds = 0.0012344;
  result.generation = {.ids = {'h', 0xe2},
                       .logprobs = {},
                       .reason = FinishReason::kStop,
                       .n_prompt = 3,
                       .n_reused = 1,
                       .n_near_ties = 0,
                       .prefill_seconds = 0.5,
                       .decode_seconds = 0.25};
  return result;
}

const std::string kTimings =
    R"("timings":{"queue_ms":1.234,"prefill_ms":500.0,"decode_ms":250.0,"reused_tokens":1})";
const std::string kUsage = R"("usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5})";

std::string refused(std::string_view output, const std::vector<BatchRequest>& of) {
  try {
    read_finished(output, of, "out");
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::kUsage);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("batch record: the plain form", "[batch]") {
  const TinyTokenizer tokenizer(byte_level_vocab());
  const auto of = requests(
      "{\"id\":7,\"prompt\":\"p\"}\n{\"id\":\"s\",\"prompt\":\"p\",\"temperature\":1,\"seed\":9}"
      "\nnonsense\n");
  CHECK(answer_record(of[0], answer("h\xe2"), *tokenizer, "m") == R"({"id":7,"text":"h)"
                                                                  "\xef\xbf\xbd"
                                                                  R"(","finish_reason":"stop",)" +
                                                                      kUsage + "," + kTimings + "}\n");
  RequestResult near = answer("x");
  near.generation.n_near_ties = 2;
  CHECK(answer_record(of[1], near, *tokenizer, "m") == R"({"id":"s","text":"x","finish_reason":"stop",)" +
                                                           kUsage + R"(,"seed":9,"near_ties":2,)" + kTimings +
                                                           "}\n");
  CHECK(error_record(of[0], "c", "why") == "{\"id\":7,\"error\":\"why\"}\n");
  CHECK(error_record(of[2], "c", "why") == "{\"id\":null,\"line\":3,\"error\":\"why\"}\n");
}

TEST_CASE("batch record: OpenAI's form, chat and text", "[batch]") {
  const TinyTokenizer tokenizer(byte_level_vocab());
  const auto of = requests(
      "{\"custom_id\":\"c\",\"body\":{\"messages\":[{\"role\":\"user\",\"content\":\"p\"}],\"logprobs\":true}"
      "}\n"
      "{\"custom_id\":\"t\",\"body\":{\"prompt\":\"p\",\"logprobs\":1}}\nnonsense\n");
  RequestResult result = answer("hi");
  result.generation.logprobs = {{'h', -0.5, {{'h', -0.5}}}, {0xe2, -1.5, {{0xe2, -1.5}}}};
  const Json chat = Json::parse(answer_record(of[0], result, *tokenizer, "m"));
  CHECK(chat["id"] == "batch_req_1");
  CHECK(chat["custom_id"] == "c");
  CHECK(chat["error"].is_null());
  CHECK(chat["response"]["status_code"] == 200);
  const Json& body = chat["response"]["body"];
  CHECK(body["object"] == "chat.completion");
  CHECK(body["created"] == 0);
  CHECK(body["model"] == "m");
  CHECK(body["choices"][0]["message"].dump() == R"({"role":"assistant","content":"hi"})");
  CHECK(body["choices"][0]["finish_reason"] == "stop");
  CHECK(body["choices"][0]["logprobs"]["content"][1]["bytes"].dump() == "[226]");
  CHECK(body["usage"]["total_tokens"] == 5);

  const Json text = Json::parse(answer_record(of[1], result, *tokenizer, "m"))["response"]["body"];
  CHECK(text["object"] == "text_completion");
  CHECK(text["choices"][0]["text"] == "hi");
  CHECK(text["choices"][0]["logprobs"]["tokens"].dump() == R"(["h","bytes:\\xe2"])");
  CHECK(text["choices"][0]["logprobs"]["top_logprobs"][0].dump() == R"({"h":-0.5})");

  CHECK(error_record(of[1], "code", "why") ==
        R"({"id":"batch_req_2","custom_id":"t","response":null,"error":{"code":"code","message":"why"}})"
        "\n");
  CHECK(
      error_record(of[2], "code", "why") ==
      R"({"id":"batch_req_3","custom_id":null,"line":3,"response":null,"error":{"code":"code","message":"why"}})"
      "\n");
}

TEST_CASE("batch resume: whole records are kept, half a one is not, wherever it ends", "[batch]") {
  const TinyTokenizer tokenizer(byte_level_vocab());
  const auto of = requests(
      "{\"id\":1,\"prompt\":\"p\"}\nnonsense\n{\"custom_id\":\"t\",\"body\":{\"prompt\":\"p\"}}\n{\"id\":"
      "\"z\",\"prompt\":\"\"}\n");
  const std::vector<std::string> records = {
      answer_record(of[0], answer("a"), *tokenizer, "m"), error_record(of[1], "c", "w"),
      answer_record(of[2], answer("b"), *tokenizer, "m"), error_record(of[3], "c", "w")};
  std::string all;
  std::vector<size_t> ends = {0};
  for (const std::string& record : records) ends.push_back((all += record).size());
  for (size_t n = 0; n <= all.size(); ++n) {
    const Finished finished = read_finished(std::string_view(all).substr(0, n), of, "out");
    size_t whole = 0;
    while (whole + 1 < ends.size() && ends[whole + 1] <= n) ++whole;
    CHECK(finished.n_records == whole);
    CHECK(finished.n_bytes == ends[whole]);
    CHECK(finished.n_failed == whole / 2);
  }
}

TEST_CASE("batch resume: what these requests did not leave is refused, line and all", "[batch]") {
  const auto of = requests("{\"id\":\"a\",\"prompt\":\"p\"}\n{\"id\":\"b\",\"prompt\":\"p\"}\n");
  const std::string a = "{\"id\":\"a\",\"text\":\"x\"}\n", b = "{\"id\":\"b\",\"error\":\"x\"}\n";
  CHECK(refused(a + b, of).empty());
  CHECK(refused(b, of).find("line 1") != std::string::npos);
  CHECK(refused(a + a, of).find("line 2") != std::string::npos);
  CHECK(refused(a + b + a, of).find("only 2 requests") != std::string::npos);
  for (const char* other : {"my notes\n", "my notes", "{\"id\":\"a\"}\n", "{\"id\":\"a\",\"prompt\":\"p\"}\n",
                            "\n", "{\"id\":\"a\",\"text\":\"x\",\"error\":\"y\"}\n", "{\"id\":\"b\",\"te"}) {
    INFO(other);
    CHECK(refused(other, of).find("out, line 1: not the record of request 1, id '\"a\"'") !=
          std::string::npos);
  }
}
