#include "core/completion.h"

#include <cmath>

#include "core/error.h"
#include "gguf/reader.h"
#include "tests/support/catch.h"
#include "tests/support/scripted_engine.h"

using namespace minfer;
using namespace minfer::test;

namespace {

struct Fixture {
  std::vector<std::byte> bytes = tiny_model();
  gguf::Reader file = gguf::Reader::from_bytes(bytes);
  std::unique_ptr<Tokenizer> tokenizer = Tokenizer::from_metadata(file.metadata());
  ScriptedEngine engine{{}, 100};
  std::vector<TokenId> prompt = {'p'};

  Completion start(const GenerateOptions& options) {
    return Completion(engine.hparams(), *tokenizer, prompt, options);
  }
  // Feeds choices until it is done; the text as it came out, a piece a choice.
  std::vector<std::string> feed(Completion& completion, const std::vector<TokenId>& ids, float margin = 1) {
    std::vector<std::string> pieces;
    for (const TokenId id : ids) {
      REQUIRE_FALSE(completion.done());
      RowResult result;
      result.argmax = id;
      result.margin = margin;
      const bool goes_on = completion.accept(result, engine).has_value();
      CHECK(goes_on != completion.done());
      pieces.push_back(completion.take_text());
    }
    return pieces;
  }
};

using Pieces = std::vector<std::string>;

}  // namespace

TEST_CASE("completion: a stop string across tokens is held back, cut off, and the reason", "[completion]") {
  Fixture f;
  Completion completion = f.start({.stop = {"xyz", "!"}});
  CHECK(f.feed(completion, {'a', 'x', 'y', 'b', 'x', 'y', 'z'}) == Pieces{"a", "", "", "xyb", "", "", ""});
  CHECK(completion.done());
  CHECK(completion.generation().reason == FinishReason::kStopString);
  CHECK(completion.generation().ids.size() == 7);
}

TEST_CASE("completion: what is held back comes out where the token limit or an end token ends it",
          "[completion]") {
  Fixture f;
  Completion by_length = f.start({.n_predict = 2, .stop = {"xyz"}});
  CHECK(f.feed(by_length, {'x', 'y'}) == Pieces{"", "xy"});
  CHECK(by_length.generation().reason == FinishReason::kLength);
  Completion by_end = f.start({.stop = {"xyz"}});
  CHECK(f.feed(by_end, {'x', kTinyImEnd}) == Pieces{"", "x"});
  CHECK(by_end.generation().reason == FinishReason::kStop);
}

TEST_CASE("completion: a match that is open when the tokens end counts", "[completion]") {
  Fixture f;
  Completion completion = f.start({.n_predict = 2, .stop = {"b", "abc"}});
  CHECK(f.feed(completion, {'a', 'b'}) == Pieces{"", "a"});
  CHECK(completion.generation().reason == FinishReason::kStopString);
}

TEST_CASE("completion: dropped control tokens neither hold a stop string nor part one", "[completion]") {
  Fixture f;
  Completion completion = f.start({.n_predict = 4, .ignore_eos = true, .stop = {"im_end", "ab"}});
  CHECK(f.feed(completion, {'a', kTinyImEnd, 'b'}) ==
        Pieces{"", "", ""});  // dropped, so a and b are neighbours
  CHECK(completion.generation().reason == FinishReason::kStopString);
}

TEST_CASE("completion: bytes of a character are matched, but printed whole only", "[completion]") {
  Fixture f;
  Completion completion = f.start({.stop = {"\xa9"}});  // the second byte of U+00E9
  CHECK(f.feed(completion, {0xc3, 0xb6, 0xc3, 0xa9}) == Pieces{"", "\xc3\xb6", "", "\xc3"});
  CHECK(completion.generation().reason == FinishReason::kStopString);
}

TEST_CASE("completion: an interruption keeps whole characters, and what may have become a stop string",
          "[completion]") {
  Fixture f;
  Completion completion = f.start({.stop = {"xyz"}});
  f.feed(completion, {'x'});
  completion.stop(FinishReason::kInterrupted);
  CHECK(completion.take_text() == "x");
  CHECK(completion.done());
  Completion half = f.start({});
  f.feed(half, {0xe2, 0x82});
  half.stop(FinishReason::kInterrupted);
  CHECK(half.take_text() == "");
  CHECK(half.generation().reason == FinishReason::kInterrupted);
}

TEST_CASE("completion: an end that is there is not overruled by an interruption", "[completion]") {
  Fixture f;
  Completion completion = f.start({});
  f.feed(completion, {kTinyEndOfText});
  completion.stop(FinishReason::kInterrupted);
  CHECK(completion.generation().reason == FinishReason::kStop);
}

TEST_CASE("completion: -n 0 is done before it begins", "[completion]") {
  Fixture f;
  const Completion completion = f.start({.n_predict = 0, .n_logprobs = 2});
  CHECK(completion.done());
  CHECK(completion.want() == Want::kArgmax);
  CHECK(completion.n_kv_tokens() == 1);
  CHECK(completion.generation().reason == FinishReason::kLength);
}

TEST_CASE("completion: logits are asked for where the choice or logprobs need them", "[completion]") {
  Fixture f;
  CHECK(f.start({}).want() == Want::kArgmax);
  CHECK(f.start({.sampling = {.top_k = 3, .top_p = 0.5, .min_p = 0.1}}).want() == Want::kArgmax);
  CHECK(f.start({.n_logprobs = 0}).want() == Want::kLogits);
  CHECK(f.start({.sampling = {.temp = 0.1}}).want() == Want::kLogits);
  CHECK(f.start({.sampling = {.repeat_penalty = 1.1}}).want() == Want::kLogits);
  CHECK(f.start({.sampling = {.repeat_penalty = 1.1, .repeat_last_n = 0}}).want() == Want::kArgmax);
  CHECK(f.start({.sampling = {.logit_bias = {{5, 1.0}}}}).want() == Want::kLogits);
}

TEST_CASE("completion: near-ties are counted where the choice is the engine's", "[completion]") {
  Fixture f;
  Completion completion = f.start({});
  f.feed(completion, {'a', 'b'}, kNearTieMargin / 2);
  f.feed(completion, {'c'}, kNearTieMargin);
  CHECK(completion.generation().n_near_ties == 2);
}

TEST_CASE("completion: the prompt counts for the penalties", "[completion]") {
  Fixture f;
  Completion completion = f.start({.sampling = {.presence_penalty = 2}});
  std::vector<float> logits(kTinyVocab);
  logits['p'] = 3;
  logits['q'] = 2;
  RowResult result;
  result.argmax = 'p';
  result.logits = logits;
  completion.accept(result, f.engine);
  CHECK(completion.generation().ids == std::vector<TokenId>{'q'});
}

TEST_CASE("completion: logprobs are those of the row as it came, one an id", "[completion]") {
  Fixture f;
  Completion completion = f.start({.sampling = {.logit_bias = {{'q', 100.0}}}, .n_logprobs = 2});
  std::vector<float> logits(kTinyVocab + 8, -1000.0F);  // rows beyond the vocabulary do not count
  logits['a'] = 1;
  logits['b'] = 0;
  logits['q'] = -1;
  logits.back() = 50;
  RowResult result;
  result.argmax = 'a';
  result.logits = logits;
  completion.accept(result, f.engine);
  REQUIRE(completion.generation().logprobs.size() == 1);
  const TokenLogprobs& of_q = completion.generation().logprobs[0];
  const double log_sum = std::log(std::exp(1) + 1 + std::exp(-1));
  CHECK(of_q.id == 'q');
  CHECK(of_q.logprob == Approx(-1 - log_sum));
  REQUIRE(of_q.top.size() == 2);
  CHECK(of_q.top[0].first == 'a');
  CHECK(of_q.top[0].second == Approx(1 - log_sum));
  CHECK(of_q.top[1].first == 'b');
}

TEST_CASE("completion: a bias or a stop string that cannot be is refused", "[completion]") {
  Fixture f;
  CHECK_THROWS_AS(f.start({.stop = {""}}), Error);
  try {
    f.start({.sampling = {.logit_bias = {{kTinyVocab, 1.0}}}});
    FAIL("not refused");
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::kUsage);
    CHECK(std::string(error.what()).find("logit bias") != std::string::npos);
    CHECK(std::string(error.what()).find(std::to_string(kTinyVocab)) != std::string::npos);
  }
}
