#include "core/session.h"

#include "core/error.h"
#include "core/reference/reference_engine.h"
#include "gguf/reader.h"
#include "tests/support/catch.h"
#include "tests/support/scripted_engine.h"

using namespace minfer;
using namespace minfer::test;

namespace {

using Ids = std::vector<TokenId>;

struct Fixture {
  std::vector<std::byte> bytes = tiny_model();
  gguf::Reader file = gguf::Reader::from_bytes(bytes);
  std::unique_ptr<Tokenizer> tokenizer = Tokenizer::from_metadata(file.metadata());
  std::string text;

  Generation run(Session& session, const Ids& prompt, int32_t n_predict) {
    text.clear();
    return session.generate(prompt, {.n_predict = n_predict}, [&](std::string_view piece) { text += piece; });
  }
};

}  // namespace

TEST_CASE("session: a prompt is computed from where it differs from what is held", "[session]") {
  Fixture f;
  ScriptedEngine engine({'x', 'y', 'z', '1', '2', '3'}, 100);
  Session session(engine, *f.tokenizer, 50);
  f.run(session, {'a', 'b'}, 2);
  CHECK(session.held() == Ids{'a', 'b', 'x'});  // nothing is computed behind the last token
  engine.fed.clear();

  const Generation next = f.run(session, {'a', 'b', 'x', 'y', 'c'}, 1);
  CHECK(engine.fed == Ids{'y', 'c'});
  CHECK(next.n_prompt == 5);
  CHECK(next.n_reused == 3);
  engine.fed.clear();

  const Generation other = f.run(session, {'a', 'd'}, 2);  // an earlier turn was changed
  CHECK(engine.fed == Ids{'d', '1'});
  CHECK(other.n_reused == 1);
  CHECK(session.held() == Ids{'a', 'd', '1'});
  CHECK(f.text == "12");
  CHECK(engine.reserved == 50);
}

TEST_CASE("session: the last token of a prompt that is held is computed again", "[session]") {
  Fixture f;
  ScriptedEngine engine({'x', 'y', 'z', 'w'}, 100);
  Session session(engine, *f.tokenizer, 50);
  f.run(session, {'a', 'b'}, 3);
  engine.fed.clear();
  const Generation again = f.run(session, {'a', 'b'}, 1);
  CHECK(engine.fed == Ids{'b'});
  CHECK(again.n_reused == 1);
  CHECK(again.ids == Ids{'w'});
}

TEST_CASE("session: after an interruption or a failure it holds what the engine holds", "[session]") {
  Fixture f;
  for (const ExitCode code : {ExitCode::kInterrupted, ExitCode::kRuntime}) {
    ScriptedEngine engine({'x', 'y', 'z'}, 100);
    engine.rows_a_group = 2;
    int32_t n_groups = 0;
    engine.before_group = [&] {
      if (++n_groups == 2) throw Error(code, "in the second group of the prompt");
    };
    Session session(engine, *f.tokenizer, 50);
    const Ids prompt = {'a', 'b', 'c', 'd', 'e'};
    if (code == ExitCode::kInterrupted) {
      const Generation stopped = f.run(session, prompt, 2);
      CHECK(stopped.reason == FinishReason::kInterrupted);
      CHECK(stopped.ids.empty());
    } else {
      CHECK_THROWS_AS(f.run(session, prompt, 2), Error);
    }
    CHECK(session.held() == Ids{'a', 'b'});
    CHECK(f.run(session, prompt, 2).n_reused == 2);
    CHECK(f.text == "xy");
    CHECK(session.held() == Ids{'a', 'b', 'c', 'd', 'e', 'x'});
  }
}

TEST_CASE("session: an answer interrupted in decode is continued from", "[session]") {
  Fixture f;
  ScriptedEngine engine({'x', 'y', 'z', 'w'}, 100);
  int32_t n_groups = 0;
  engine.before_group = [&] {
    if (++n_groups == 3) throw Error(ExitCode::kInterrupted, "interrupted");
  };
  Session session(engine, *f.tokenizer, 50);
  const Generation stopped = f.run(session, {'a'}, 10);
  CHECK(stopped.reason == FinishReason::kInterrupted);
  CHECK(stopped.ids == Ids{'x', 'y'});
  CHECK(f.text == "xy");
  CHECK(session.held() == Ids{'a', 'x'});
  CHECK(f.run(session, {'a', 'x', 'y', 'b'}, 1).n_reused == 2);
}

TEST_CASE("session: more than its room is refused with both numbers, and changes nothing", "[session]") {
  Fixture f;
  ScriptedEngine engine({'x', 'y'}, 100);
  Session session(engine, *f.tokenizer, 4);
  f.run(session, {'a'}, 1);
  try {
    f.run(session, {'a', 'b', 'c'}, 2);
    FAIL("not refused");
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::kUsage);
    CHECK(std::string(error.what()).find("for 5") != std::string::npos);
    CHECK(std::string(error.what()).find("has 4") != std::string::npos);
  }
  CHECK(session.held() == Ids{'a'});
}

TEST_CASE("session: the turns of a conversation give what each gives alone", "[session]") {
  Fixture f;
  const auto engine = make_reference_engine(f.file, {.n_threads = 1, .n_vocab_used = kTinyVocab});
  Session session(*engine, *f.tokenizer, 200);
  Ids prompt = f.tokenizer->encode("the first turn");
  for (const char* const next : {"and then", "some more", "the end"}) {
    std::string alone;
    const GenerateOptions options{.n_predict = 12, .ignore_eos = true};
    const Generation fresh =
        generate(*engine, *f.tokenizer, prompt, options, [&](std::string_view piece) { alone += piece; });
    f.text.clear();
    const Generation turn =
        session.generate(prompt, options, [&](std::string_view piece) { f.text += piece; });
    CHECK(turn.ids == fresh.ids);
    CHECK(f.text == alone);
    prompt.insert(prompt.end(), turn.ids.begin(), turn.ids.end());
    const Ids more = f.tokenizer->encode(next, {.add_special = false});
    prompt.insert(prompt.end(), more.begin(), more.end());
  }
}
