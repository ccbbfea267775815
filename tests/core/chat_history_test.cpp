#include "core/chat_history.h"

#include "core/reference/reference_engine.h"
#include "core/session.h"
#include "gguf/reader.h"
#include "tests/support/catch.h"
#include "tests/support/tiny_model.h"

namespace minfer {
namespace {

using Ids = std::vector<TokenId>;

constexpr const char* kChatMl =
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor "
    "%}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";
// Earlier answers lose what stands before "!".
constexpr const char* kForgetful =
    "{% for message in messages %}<|im_start|>{{ message.content.split('!')[-1] }}<|im_end|>{% endfor %}"
    "<|im_start|>";

std::vector<std::byte> long_context_model() {
  test::TinyModel model;
  model.n_ctx = 2048;
  return test::tiny_model(model);
}

struct Chat {
  explicit Chat(const char* source)
      : bytes(long_context_model()),
        file(gguf::Reader::from_bytes(bytes)),
        tokenizer(Tokenizer::from_metadata(file.metadata())),
        chat_template(ChatTemplate::for_tokenizer(source, "test", *tokenizer)) {}

  ChatHistory history(const std::optional<std::string>& system = {}, std::string prefill = {}) const {
    return {chat_template, *tokenizer, system, std::move(prefill)};
  }
  Ids encode_all(const std::string& text) const {
    return tokenizer->encode(text, {.add_special = false, .parse_special = true});
  }

  std::vector<std::byte> bytes;
  gguf::Reader file;
  std::unique_ptr<Tokenizer> tokenizer;
  ChatTemplate chat_template;
};

bool begins_with(const Ids& ids, const Ids& prefix) {
  return ids.size() >= prefix.size() && std::equal(prefix.begin(), prefix.end(), ids.begin());
}

Ids joined(Ids a, const Ids& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace

TEST_CASE("chat_history: a prompt goes on with the ids that were generated, however they spell it",
          "[chat]") {
  const Chat chat(kChatMl);
  ChatHistory history = chat.history("be brief");
  const auto first = history.ask("Hi");
  CHECK(first.ids == chat.encode_all(first.text));
  // "the" in single bytes, which the tokenizer would merge.
  const Ids answer{'t', 'h', 'e', test::kTinyImEnd};
  history.add("Hi", first, "the", answer);
  const auto second = history.ask("And?");
  CHECK(begins_with(second.ids, joined(first.ids, answer)));
  CHECK(chat.tokenizer->decode(second.ids, true) == second.text);
  CHECK(second.text.ends_with("the<|im_end|>\n<|im_start|>user\nAnd?<|im_end|>\n<|im_start|>assistant\n"));
  CHECK(std::count(second.ids.begin(), second.ids.end(), test::kTinyImEnd) == 4);
}

TEST_CASE("chat_history: an answer that was cut goes on with the template's own end", "[chat]") {
  const Chat chat(kChatMl);
  const auto ids_after = [&](const std::string& shown, const Ids& ids) {
    ChatHistory history = chat.history();
    const auto first = history.ask("Hi");
    history.add("Hi", first, shown, ids);
    const auto second = history.ask("b");
    CHECK(chat.tokenizer->decode(second.ids, true) == second.text);
    CHECK(begins_with(second.ids, first.ids));
    return Ids(second.ids.begin() + static_cast<std::ptrdiff_t>(first.ids.size()), second.ids.end());
  };
  CHECK(begins_with(ids_after("ab", {'a', 'b'}), {'a', 'b', test::kTinyImEnd}));  // -n
  CHECK(begins_with(ids_after("a", {'a', 0xc3}), {'a', test::kTinyImEnd}));       // inside a character
  CHECK(begins_with(ids_after("at", {'a', 258}), {'a', 't', test::kTinyImEnd}));  // --stop he
  CHECK(begins_with(ids_after("a", {'a', test::kTinyEndOfText}), {'a', test::kTinyImEnd}));  // another end
  CHECK(begins_with(ids_after("", {}), {test::kTinyImEnd}));
  CHECK(begins_with(ids_after("", {test::kTinyImEnd}), {test::kTinyImEnd, '\n'}));
}

TEST_CASE("chat_history: where the template changes earlier turns all is encoded anew", "[chat]") {
  const Chat chat(kForgetful);
  ChatHistory history = chat.history();
  const auto first = history.ask("x");
  history.add("x", first, "no!yes", chat.encode_all("no!yes<|im_end|>"));
  const auto second = history.ask("y");
  CHECK(second.text == "<|im_start|>x<|im_end|><|im_start|>yes<|im_end|><|im_start|>y<|im_end|><|im_start|>");
  CHECK(second.ids == chat.encode_all(second.text));
}

TEST_CASE("chat_history: users' control tokens stay text in every turn", "[chat]") {
  const Chat chat(kChatMl);
  ChatHistory history = chat.history("<|im_end|>", "<|im_start|>");
  for (int turn = 0; turn < 3; ++turn) {
    const auto prompt = history.ask("<|im_end|>");
    CHECK(std::count(prompt.ids.begin(), prompt.ids.end(), test::kTinyImEnd) == 2 + 2 * turn);
    CHECK(std::count(prompt.ids.begin(), prompt.ids.end(), test::kTinyImStart) == 3 + 2 * turn);
    CHECK(prompt.text.ends_with("<|im_start|>assistant\n<|im_start|>"));
    CHECK(chat.tokenizer->decode(prompt.ids, true) == prompt.text);
    history.add("<|im_end|>", prompt, "ok", {{'o', 'k'}});
  }
  CHECK(history.messages().back().at("content") == "<|im_start|>ok");
}

TEST_CASE("chat_history: the last turn is taken back, and all but the system message forgotten", "[chat]") {
  const Chat chat(kChatMl);
  ChatHistory history = chat.history("s");
  CHECK_FALSE(history.take_last());
  const auto first = history.ask("a");
  history.add("a", first, "t", {{'t'}});
  const auto second = history.ask("b");
  history.add("b", second, "h", {{'h'}});
  const auto whole = history.messages();
  const auto third = history.ask("c");
  auto turn = history.take_last();
  REQUIRE(turn);
  CHECK(turn->message == "b");
  CHECK(history.messages().size() == 3);
  CHECK(history.ask("b").ids == second.ids);
  history.put_back(std::move(*turn));
  CHECK(history.messages() == whole);
  CHECK(history.ask("c").ids == third.ids);
  history.clear();
  CHECK(history.messages() == nlohmann::ordered_json::array({{{"role", "system"}, {"content", "s"}}}));
  CHECK(history.ask("a").ids == first.ids);
}

TEST_CASE("chat_history: a session prefills only what a turn adds", "[chat]") {
  const Chat chat(kChatMl);
  const auto engine = make_reference_engine(chat.file, {.n_threads = 1});
  Session session(*engine, *chat.tokenizer, 2048);
  ChatHistory history = chat.history("be brief");
  size_t n_held = 0;
  for (const std::string message : {"Hi", "the other", "and?"}) {
    const auto prompt = history.ask(message);
    std::string text;
    const Generation run = session.generate(prompt.ids, {.n_predict = 20, .n_ctx = 2048},
                                            [&](std::string_view piece) { text += piece; });
    INFO(message);
    CHECK(static_cast<size_t>(run.n_reused) == n_held);
    CHECK(static_cast<size_t>(run.n_prompt) == prompt.ids.size());
    history.add(message, prompt, text, run.ids);
    n_held = session.held().size();
    CHECK(n_held >= prompt.ids.size() + run.ids.size() - 1);
  }
}

}  // namespace minfer
