#include "core/generator.h"

#include "core/error.h"
#include "gguf/reader.h"
#include "tests/support/catch.h"
#include "tests/support/scripted_engine.h"
#include "tests/support/tiny_model.h"

using namespace minfer;
using namespace minfer::test;

namespace {

// Ids below 256 stand for the byte of that value (tiny_model.h).
struct Fixture {
  std::vector<std::byte> bytes = tiny_model();
  gguf::Reader file = gguf::Reader::from_bytes(bytes);
  std::unique_ptr<Tokenizer> tokenizer = Tokenizer::from_metadata(file.metadata());
  std::vector<std::string> pieces;

  Generation run(ScriptedEngine& engine, const GenerateOptions& options,
                 std::vector<TokenId> prompt = {'a', 'b', 'c'}) {
    pieces.clear();
    return generate(engine, *tokenizer, prompt, options,
                    [&](std::string_view piece) { pieces.emplace_back(piece); });
  }
  std::string text() const {
    std::string all;
    for (const std::string& piece : pieces) all += piece;
    return all;
  }
};

}  // namespace

TEST_CASE("generator: feeds the prompt, then each choice, until n tokens are there", "[generator]") {
  Fixture f;
  ScriptedEngine engine({'x', 'y', 'z', 'w'}, 100);
  const Generation run = f.run(engine, {.n_predict = 3});
  CHECK(run.ids == std::vector<TokenId>{'x', 'y', 'z'});
  CHECK(run.reason == FinishReason::kLength);
  CHECK(run.n_prompt == 3);
  CHECK(engine.fed ==
        std::vector<TokenId>{'a', 'b', 'c', 'x', 'y'});  // nothing is computed behind the last one
  CHECK(engine.reserved == 6);
  CHECK(engine.all_freed());
  CHECK(f.text() == "xyz");
}

TEST_CASE("generator: an end-of-generation token stops and is not printed", "[generator]") {
  Fixture f;
  for (const TokenId end : {kTinyEndOfText, kTinyImEnd}) {
    ScriptedEngine engine({'x', end, 'y'}, 100);
    const Generation run = f.run(engine, {.n_predict = 10});
    CHECK(run.ids == std::vector<TokenId>{'x', end});
    CHECK(run.reason == FinishReason::kStop);
    CHECK(f.text() == "x");
  }
}

TEST_CASE("generator: with ignore_eos it goes on past the end token, still without printing it",
          "[generator]") {
  Fixture f;
  ScriptedEngine engine({'x', kTinyImEnd, 'y'}, 100);
  const Generation run = f.run(engine, {.n_predict = 3, .ignore_eos = true});
  CHECK(run.reason == FinishReason::kLength);
  CHECK(f.text() == "xy");
}

TEST_CASE("generator: an end token in the prompt stops nothing", "[generator]") {
  Fixture f;
  ScriptedEngine engine({'x', 'y'}, 100);
  CHECK(f.run(engine, {.n_predict = 2}, {'a', kTinyImEnd}).ids.size() == 2);
}

TEST_CASE("generator: the context limits what is reserved and generated", "[generator]") {
  Fixture f;
  for (const int32_t n_predict : {-1, 50}) {
    ScriptedEngine engine({'1', '2', '3', '4', '5'}, 100);
    const Generation run = f.run(engine, {.n_predict = n_predict, .n_ctx = 8});
    CHECK(run.ids.size() == 5);
    CHECK(run.reason == FinishReason::kContextFull);
    CHECK(engine.reserved == 8);
  }
  ScriptedEngine exact({'1', '2', '3', '4', '5'}, 8);  // the trained context holds where none is given
  CHECK(f.run(exact, {.n_predict = 5}).reason == FinishReason::kLength);
}

TEST_CASE("generator: a prompt that fills the context is refused with both numbers", "[generator]") {
  Fixture f;
  ScriptedEngine engine({'x'}, 3);
  try {
    f.run(engine, {.n_predict = 1});
    FAIL("not refused");
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::kUsage);
    CHECK(std::string(error.what()).find("3 tokens") != std::string::npos);
    CHECK(std::string(error.what()).find("context of 3") != std::string::npos);
  }
  CHECK(f.run(engine, {.n_predict = 0}).ids.empty());  // computing the prompt alone still fits
  CHECK_THROWS_AS(f.run(engine, {}, {}), Error);
}

TEST_CASE("generator: characters are printed whole, and what is left of one comes last", "[generator]") {
  Fixture f;
  ScriptedEngine engine({0xc3, 0xa9, 'x', 0xe2, 0x82}, 100);  // U+00E9, x, two of the three bytes of U+20AC
  f.run(engine, {.n_predict = 5});
  CHECK(f.pieces == std::vector<std::string>{"\xc3\xa9", "x", "\xe2\x82"});
}

TEST_CASE("generator: a choice that is not finite stops the run and names step and layer", "[generator]") {
  Fixture f;
  ScriptedEngine engine({'x', 'y', 'z'}, 100);
  engine.bad_step = 1;
  try {
    f.run(engine, {.n_predict = 3});
    FAIL("not stopped");
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::kRuntime);
    CHECK(std::string(error.what()).find("step 1") != std::string::npos);
    CHECK(std::string(error.what()).find("layer 3") != std::string::npos);
  }
  CHECK(f.text() == "x");
  CHECK(engine.all_freed());
}

TEST_CASE("generator: a sink that throws ends the run and frees its sequence", "[generator]") {
  Fixture f;
  ScriptedEngine engine({'x', 'y'}, 100);
  const auto full = [](std::string_view) { throw Error(ExitCode::kRuntime, "full"); };
  const std::vector<TokenId> prompt = {'a'};
  CHECK_THROWS_AS(generate(engine, *f.tokenizer, prompt, {.n_predict = 2}, full), Error);
  CHECK(engine.all_freed());
}
