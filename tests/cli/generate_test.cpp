#include <cmath>
#include <set>

#include "nlohmann/json.hpp"
#include "tests/cli/cli.h"
#include "tests/support/catch.h"
#include "tests/support/oracle.h"

using namespace minfer::test;
using nlohmann::json;

namespace {

const std::string kPrompt = "The quick brown fox";

Outcome complete(std::vector<std::string> more) {
  std::vector<std::string> args = {"-m", kSmallModel, "-p", kPrompt, "--ignore-eos", "-n", "16"};
  args.insert(args.end(), more.begin(), more.end());
  return run_cli(args);
}

// The one object that --json prints; FAILs where stdout is anything else.
json json_of(const Outcome& outcome) {
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  REQUIRE(std::count(outcome.out.begin(), outcome.out.end(), '\n') == 1);
  return json::parse(outcome.out);
}

std::string printable(const std::string& bytes) {
  return json::parse(json(bytes).dump(-1, ' ', false, json::error_handler_t::replace)).get<std::string>();
}

}  // namespace

TEST_CASE("generate: --json holds the answer and what it cost, and nothing else is on stdout", "[cli]") {
  const json answer = json_of(complete({"--json"}));
  CHECK(answer.at("text").get<std::string>() == printable(complete({}).out));
  CHECK(answer.at("finish_reason") == "length");
  CHECK(answer.at("usage").at("prompt_tokens").get<int>() > 0);
  CHECK(answer.at("usage").at("completion_tokens") == 16);
  CHECK_FALSE(answer.contains("seed"));
  CHECK_FALSE(answer.contains("logprobs"));
  CHECK_FALSE(answer.contains("prompt"));
  const json& timings = answer.at("timings");
  for (const char* key : {"load_s", "prefill_s", "first_token_s", "decode_s", "total_s",
                          "prefill_tokens_per_s", "decode_tokens_per_s", "peak_memory_bytes"}) {
    INFO(key);
    CHECK(timings.at(key).get<double>() > 0);
  }
  const auto seconds = [&](const char* key) { return timings.at(key).get<double>(); };
  CHECK(seconds("first_token_s") == Approx(seconds("load_s") + seconds("prefill_s")));
  CHECK(seconds("total_s") >= seconds("first_token_s") + seconds("decode_s"));
  CHECK(seconds("decode_tokens_per_s") ==
        Approx(15 / seconds("decode_s")));  // the first came out of the prefill
}

TEST_CASE("generate: --json says null where there is nothing to divide", "[cli]") {
  const json timings = json_of(complete({"--json", "-n", "0"})).at("timings");
  CHECK(timings.at("first_token_s").is_null());
  CHECK(timings.at("decode_tokens_per_s").is_null());
  CHECK(timings.at("decode_s") == 0);
  CHECK(json_of(complete({"--json", "-n", "1"})).at("timings").at("decode_tokens_per_s").is_null());
}

TEST_CASE("generate: --display-prompt puts the prompt ahead of the answer", "[cli]") {
  CHECK(complete({"--display-prompt"}).out == kPrompt + complete({}).out);
  CHECK(json_of(complete({"--json", "--display-prompt"})).at("prompt") == kPrompt);
}

TEST_CASE("generate: a seed gives the same text again, and is told where it was drawn", "[cli]") {
  const json first = json_of(complete({"--json", "--temp", "1.5"}));
  const std::string seed = std::to_string(first.at("seed").get<uint64_t>());
  const Outcome again = complete({"--json", "--temp", "1.5", "--seed", seed});
  CHECK(json_of(again).at("text") == first.at("text"));
  CHECK(again.err.find("seed: " + seed + "\n") != std::string::npos);
  std::set<std::string> texts;
  for (const char* other : {"1", "2", "3"}) {
    texts.insert(complete({"--temp", "1.5", "--seed", other}).out);
  }
  CHECK(texts.size() == 3);
  CHECK(complete({"--seed", seed}).err.find("seed") == std::string::npos);  // greedy draws nothing
}

TEST_CASE("generate: --top-k 1 is greedy, and a bias of -inf forbids", "[cli]") {
  const std::string greedy = complete({}).out;
  CHECK(complete({"--temp", "2", "--top-k", "1", "--seed", "5"}).out == greedy);
  const json answer = json_of(complete({"--json", "--logprobs", "0", "-n", "1"}));
  const std::string id = std::to_string(answer.at("logprobs")[0].at("id").get<int>());
  CHECK(complete({"--logit-bias", id + "-inf"}).out != greedy);
  CHECK(complete({"--logit-bias", id + "+5", "-n", "1"}).out == complete({"-n", "1"}).out);
}

TEST_CASE("generate: a bias of a token that is not there names flag and vocabulary, exit 2", "[cli]") {
  const Outcome outcome = complete({"-q", "--logit-bias", "100000000+1"});
  CHECK(outcome.exit_code == 2);
  CHECK(is_one_error_line(outcome));
  CHECK(outcome.err.find("--logit-bias") != std::string::npos);
  CHECK(outcome.err.find("100000000") != std::string::npos);
}

TEST_CASE("generate: --stop ends the text before the match, and says so", "[cli]") {
  const std::string whole = complete({}).out;
  REQUIRE(whole.size() > 8);
  for (const size_t at : {size_t{0}, whole.size() / 3, whole.size() - 2}) {
    const std::string stop = whole.substr(at, 2);
    if (stop.find('\0') != std::string::npos) continue;  // no argument can hold it
    const Outcome outcome = complete({"--stop", stop, "--stop", "never in it, never"});
    CHECK(outcome.out == whole.substr(0, whole.find(stop)));
    CHECK(outcome.err.find("stopped: stop string") != std::string::npos);
    CHECK(json_of(complete({"--json", "--stop", stop})).at("finish_reason") == "stop");
  }
}

TEST_CASE("generate: --logprobs tells each token's, and of the likeliest", "[cli]") {
  const json answer = json_of(complete({"--json", "--logprobs", "3"}));
  const json& logprobs = answer.at("logprobs");
  REQUIRE(logprobs.size() == 16);
  std::string text;
  for (const json& entry : logprobs) {
    for (const int byte : entry.at("bytes")) text += static_cast<char>(byte);
    const json& top = entry.at("top_logprobs");
    REQUIRE(top.size() == 3);
    CHECK(top[0].at("id") == entry.at("id"));  // greedy
    CHECK(top[0].at("logprob") == entry.at("logprob"));
    double sum = 0;
    for (const json& candidate : top) sum += std::exp(candidate.at("logprob").get<double>());
    CHECK(sum < 1 + 1e-9);
    CHECK(top[0].at("logprob") >= top[1].at("logprob"));
    CHECK(top[1].at("logprob") >= top[2].at("logprob"));
  }
  CHECK(text == complete({}).out);
}

TEST_CASE("generate: an interruption still prints the object, exit 130", "[cli]") {
  Run run = cli({"-v", "-m", kSmallModel, "-p", kPrompt, "--ignore-eos", "-n", "3000", "--json"});
  run.interrupt_on_stderr = "prefill of";
  const Outcome outcome = run_process(run);
  CHECK(outcome.exit_code == 130);
  const json answer = json::parse(outcome.out);
  CHECK(answer.at("finish_reason") == "interrupted");
  CHECK(answer.at("usage").at("completion_tokens").get<int>() < 3000);
}

TEST_CASE("generate: an instruct model given a raw prompt gets one hint, which -q silences (real model)",
          "[cli][oracle][real]") {
  const auto model = find_model("SmolLM2-135M-Instruct.Q4_1.gguf");
  if (!model) MINFER_SKIP("no SmolLM2-135M-Instruct.Q4_1.gguf");
  const auto hints = [&](std::vector<std::string> more) {
    std::vector<std::string> args = {"-m", model->string(), "-p", "Hello", "-n", "1"};
    args.insert(args.end(), more.begin(), more.end());
    const std::string err = run_cli(args).err;
    size_t n = 0;
    for (size_t at = err.find("--chat"); at != std::string::npos; at = err.find("--chat", at + 1)) ++n;
    return n;
  };
  CHECK(hints({}) == 1);
  CHECK(hints({"-q"}) == 0);
  CHECK(hints({"--chat"}) == 0);
  CHECK(complete({}).err.find("--chat") == std::string::npos);  // a model without a template
}

TEST_CASE("generate: the answer begins with --prefill-response (real model)", "[cli][oracle][real]") {
  const auto model = find_model("SmolLM2-135M-Instruct.Q4_1.gguf");
  if (!model) MINFER_SKIP("no SmolLM2-135M-Instruct.Q4_1.gguf");
  const std::vector<std::string> args = {"-m", model->string(),      "--chat", "-p", "Name a colour.", "-n",
                                         "4",  "--prefill-response", "Mauve"};
  const auto run = [&](const char* flag) {
    std::vector<std::string> all = args;
    all.push_back(flag);
    return run_cli(all);
  };
  const std::string answer = run("-q").out;
  CHECK(answer.starts_with("Mauve"));
  CHECK(answer.size() > 5);
  CHECK(json_of(run("--json")).at("text") == answer);
  const std::string with_prompt = run("--display-prompt").out;
  CHECK(with_prompt.ends_with(answer));
  CHECK_FALSE(with_prompt.ends_with("Mauve" + answer));
}
