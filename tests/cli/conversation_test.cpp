#include <signal.h>

#include <nlohmann/json.hpp>

#include "tests/cli/cli.h"
#include "tests/support/catch.h"
#include "tests/support/oracle.h"
#include "tests/support/pty.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_model.h"

namespace minfer::test {
namespace {

constexpr const char* kReady = "> \r\x1b[2C";  // an empty line under edit
constexpr const char* kChatMl =
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor "
    "%}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

// A conversation with a tiny model in a terminal of its own.
class Chat {
 public:
  explicit Chat(std::vector<std::string> more, PtyProcess::Settings settings = {.env = {"TERM=xterm"}})
      : process_(arguments(std::move(more)), std::move(settings)) {}

  PtyProcess* operator->() { return &process_; }

  void send(const std::string& line) { process_.send(line); }
  bool ready() { return process_.expect(kReady); }
  // Sends a line and waits for the next prompt.
  bool turn(const std::string& line) {
    send(line + "\r");
    return ready();
  }
  // The messages so far, by /save.
  nlohmann::json messages() {
    const std::string path = folder_.path("saved" + std::to_string(n_saved_++) + ".json");
    send("/save " + path + "\r");
    REQUIRE(process_.expect("messages written to"));
    REQUIRE(ready());
    return nlohmann::json::parse(read_file(path));
  }
  std::string path(const std::string& name) const { return folder_.path(name); }
  int wait_exit(std::string_view key = {}) {
    const int code = process_.wait_exit(key);
    CHECK(process_.mode_is_restored());
    return code;
  }

 private:
  std::vector<std::string> arguments(std::vector<std::string> more) const {
    TinyModel model;
    model.n_ctx = 30000;
    model.chat_template = kChatMl;
    std::vector<std::string> args{
        MINFER_CLI, "-m", folder_.write("tiny.gguf", tiny_model(model)).string(), "--chat", "--device", "cpu",
        "-t",       "1"};
    args.insert(args.end(), more.begin(), more.end());
    return args;
  }

  TempDir folder_;
  PtyProcess process_;
  int n_saved_ = 0;
};

const std::vector<std::string> kEndless{"-c", "30000", "-n", "-1", "--ignore-eos"};

}  // namespace

TEST_CASE("conversation: turns, commands, and the end", "[cli]") {
  Chat chat({"-n", "8", "-v", "-sys", "be brief"});
  REQUIRE(chat.ready());
  REQUIRE(chat.turn("Hi"));
  const auto first = chat.messages();
  REQUIRE(first.size() == 3);
  CHECK(first[0] == nlohmann::json{{"role", "system"}, {"content", "be brief"}});
  CHECK(first[1] == nlohmann::json{{"role", "user"}, {"content", "Hi"}});
  CHECK(first[2].at("role") == "assistant");
  CHECK_FALSE(first[2].at("content").get<std::string>().empty());

  REQUIRE(chat.turn("/regen"));
  CHECK(chat.messages() == first);
  chat.send("And?\r");
  CHECK(chat->expect("more reused"));
  REQUIRE(chat.ready());
  CHECK(chat.messages().size() == 5);

  chat.send("/foo bar\r");
  CHECK(chat->expect("/foo: no such command"));
  REQUIRE(chat.ready());
  REQUIRE(chat.turn("/clear"));
  CHECK(chat.messages().size() == 1);
  chat.send("/regen\r");
  CHECK(chat->expect("nothing was answered yet"));
  REQUIRE(chat.ready());
  REQUIRE(chat.turn("//x"));
  CHECK(chat.messages()[1].at("content") == "/x");
  REQUIRE(chat.turn("   "));
  CHECK(chat.messages().size() == 3);
  chat.send("/help\r");
  CHECK(chat->expect("/save"));
  REQUIRE(chat.ready());
  chat.send("\x04");
  CHECK(chat.wait_exit() == 0);
}

TEST_CASE("conversation: /save says what it replaces and what it cannot write; /quit leaves", "[cli]") {
  Chat chat({"-n", "2"});
  REQUIRE(chat.ready());
  const std::string path = chat.path("a file.json");
  chat.send("/save " + path + "\r");
  CHECK(chat->expect("0 messages written to"));
  REQUIRE(chat.ready());
  chat.send("/save " + path + "\r");
  CHECK(chat->expect("in place of what it held"));
  REQUIRE(chat.ready());
  chat.send("/save " + chat.path("no/folder/x") + "\r");
  CHECK(chat->expect("No such file or directory"));
  REQUIRE(chat.ready());
  chat.send("/save\r");
  CHECK(chat->expect("needs a file"));
  REQUIRE(chat.ready());
  CHECK(read_file(path) == "[]\n");
  chat.send("/quit\r");
  CHECK(chat.wait_exit() == 0);
}

TEST_CASE("conversation: messages of several lines", "[cli]") {
  Chat chat({"-n", "1"});
  const std::vector<std::pair<std::string, std::string>> cases{
      {"one\\\rtwo\r", "one\ntwo"},
      {"one\x1b\rtwo\ntr\xc3\xaes\r", "one\ntwo\ntr\xc3\xaes"},
      {"\"\"\"\rone\r\r two\\\r\"\"\"\r", "one\n\n two\\"},
      {"\x1b[200~one\r\n\"\"\"two\rthree\x1b[201~\r", "one\n\"\"\"two\nthree"},
  };
  REQUIRE(chat.ready());
  for (const auto& [keys, wanted] : cases) {
    chat.send(keys);
    REQUIRE(chat.ready());
    const auto messages = chat.messages();
    CHECK(messages[messages.size() - 2].at("content") == wanted);
  }
  // The message before /save, which stands two back in the history.
  chat.send("\x1b[A\x1b[A!\r");
  REQUIRE(chat.ready());
  CHECK(chat.messages().size() == 10);
  chat.send("\x04");
  CHECK(chat.wait_exit() == 0);
}

TEST_CASE("conversation: Ctrl-C stops an answer, which stays; clears a line; twice leaves", "[cli]") {
  Chat chat(kEndless);
  REQUIRE(chat.ready());
  chat.send("Hi\r");
  REQUIRE(chat->expect("> Hi\r\n"));
  REQUIRE(chat->expect_bytes(100));
  chat.send("\x03");
  CHECK(chat->expect("stopped: interrupted"));
  REQUIRE(chat.ready());
  const auto messages = chat.messages();
  REQUIRE(messages.size() == 2);
  CHECK_FALSE(messages[1].at("content").get<std::string>().empty());
  chat.send("abc\x03");
  CHECK(chat->expect("> abc^C\r\n"));
  REQUIRE(chat.ready());
  chat.send("\x03");
  CHECK(chat->expect("Ctrl-C again"));
  REQUIRE(chat.ready());
  chat.send("\x03");
  CHECK(chat.wait_exit() == 130);
}

TEST_CASE("conversation: Ctrl-C again and again leaves an answer", "[cli]") {
  Chat chat(kEndless);
  REQUIRE(chat.ready());
  chat.send("Hi\r");
  REQUIRE(chat->expect("> Hi\r\n"));
  REQUIRE(chat->expect_bytes(100));
  CHECK(chat.wait_exit("\x03") == 130);
}

TEST_CASE("conversation: SIGTERM and SIGHUP end it, the terminal as it was", "[cli]") {
  for (const int signal : {SIGTERM, SIGHUP}) {
    for (const bool in_answer : {false, true}) {
      Chat chat(kEndless);
      REQUIRE(chat.ready());
      if (in_answer) {
        chat.send("Hi\r");
        REQUIRE(chat->expect("> Hi\r\n"));
        REQUIRE(chat->expect_bytes(100));
      }
      chat->kill(signal);
      CHECK(chat.wait_exit() == 130);
      CHECK(chat->unread().find("\x1b[?2004l") != std::string::npos);
    }
  }
}

TEST_CASE("conversation: a long line wraps, and anew where the terminal changes", "[cli]") {
  Chat chat({"-n", "1"}, {.env = {"TERM=xterm"}, .rows = 24, .columns = 40});
  REQUIRE(chat.ready());
  const std::string xs(60, 'x');
  chat.send(xs);
  CHECK(chat->expect("> " + std::string(38, 'x') + "\r\n" + std::string(22, 'x') + "\r\x1b[22C"));
  chat->resize(24, 30);
  // What took rows of 40 and 22 takes three of 30, with the cursor in the third.
  CHECK(chat->expect("\r\x1b[2A\x1b[J"));
  CHECK(chat->expect("> " + std::string(28, 'x') + "\r\n" + std::string(30, 'x') + "\r\nxx\r\x1b[2C"));
  chat.send("\r");
  REQUIRE(chat.ready());
  CHECK(chat.messages()[0].at("content") == xs);
  chat.send("\x04");
  CHECK(chat.wait_exit() == 0);
}

TEST_CASE("conversation: a turn that does not fit is refused, and the conversation goes on", "[cli]") {
  Chat chat({"-c", "100", "-n", "4"});
  REQUIRE(chat.ready());
  chat.send(std::string(200, 'x') + "\r");
  CHECK(chat->expect("tokens, which leaves no room in the context of 100"));
  CHECK(chat->expect("/clear"));
  REQUIRE(chat.ready());
  REQUIRE(chat.turn("short"));
  CHECK(chat.messages().size() == 2);
  chat.send("\x04");
  CHECK(chat.wait_exit() == 0);
}

TEST_CASE("conversation: a full context says so", "[cli]") {
  Chat chat({"-c", "60", "-n", "-1", "--ignore-eos"});
  REQUIRE(chat.ready());
  chat.send("Hi\r");
  CHECK(chat->expect("context full"));
  REQUIRE(chat.ready());
  chat.send("\x04");
  CHECK(chat.wait_exit() == 0);
}

TEST_CASE("conversation: control characters of an answer are shown, not obeyed", "[cli]") {
  Chat chat({"-n", "3", "--logit-bias", "27+1000", "--prefill-response", "\x1b]"});  // the byte 1b, always
  REQUIRE(chat.ready());
  chat.send("Hi\r");
  CHECK(chat->expect("\\x1b]\\x1b\\x1b\\x1b"));
  REQUIRE(chat.ready());
  CHECK(chat.messages()[1].at("content") == "\x1b]\x1b\x1b\x1b");
  chat.send("\x04");
  CHECK(chat.wait_exit() == 0);
}

TEST_CASE("conversation: a terminal without capabilities gets no sequences", "[cli]") {
  Chat chat({"-n", "2"}, {.env = {"TERM=dumb", "NO_COLOR=1"}});
  REQUIRE(chat->expect("> "));
  chat.send("one\\\rtwo\r");
  REQUIRE(chat->expect("two\r\n"));
  REQUIRE(chat->expect("\n> "));
  const std::string path = chat.path("saved.json");
  chat.send("/save " + path + "\r");
  REQUIRE(chat->expect("messages written to"));
  REQUIRE(chat->expect("\n> "));
  CHECK(nlohmann::json::parse(read_file(path))[0].at("content") == "one\ntwo");
  chat.send("\x03");
  CHECK(chat->expect("Ctrl-C again"));
  REQUIRE(chat->expect("\n> "));
  chat.send("\x04");
  CHECK(chat.wait_exit() == 0);
  CHECK(chat->output().find('\x1b') == std::string::npos);
}

TEST_CASE("conversation: needs a terminal, and says what does not", "[cli]") {
  const Outcome outcome = run_cli({"-m", kSmallModel, "--chat"});
  CHECK(outcome.exit_code == 2);
  CHECK(is_one_error_line(outcome));
  CHECK(outcome.err.find("-p TEXT") != std::string::npos);
  CHECK(outcome.err.find("-f FILE") != std::string::npos);
}

}  // namespace minfer::test
