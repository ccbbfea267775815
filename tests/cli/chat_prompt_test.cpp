#include <nlohmann/json.hpp>

#include "tests/cli/cli.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_model.h"

namespace minfer::test {
namespace {

// A model whose template writes "S" and "U" before system's and user's messages, and "A" before the answer.
class ChatModel {
 public:
  explicit ChatModel(
      const std::string& chat_template =
          "{% for m in messages %}{{ m.role[0] | upper }}{{ m.content }}<|im_end|>{% endfor %}A") {
    TinyModel model;
    model.chat_template = chat_template;
    path_ = folder_.write("tiny.gguf", tiny_model(model)).string();
  }

  Outcome tokenize(std::vector<std::string> more) const {
    std::vector<std::string> args{"-m", path_, "--tokenize"};
    args.insert(args.end(), more.begin(), more.end());
    return run_cli(args);
  }
  std::vector<int32_t> ids(std::vector<std::string> more) const {
    const Outcome outcome = tokenize(std::move(more));
    INFO(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    return nlohmann::json::parse(outcome.out).get<std::vector<int32_t>>();
  }
  std::string write(const std::string& name, std::string_view text) const {
    return folder_.write(name, text).string();
  }

 private:
  TempDir folder_;
  std::string path_;
};

using Ids = std::vector<int32_t>;

}  // namespace

TEST_CASE("chat prompt: --tokenize --chat shows the ids of one turn", "[cli]") {
  const ChatModel model;
  CHECK(model.ids({"--chat", "-p", "x"}) == Ids{'U', 'x', kTinyImEnd, 'A'});
  CHECK(model.ids({"-p", "x"}) == Ids{'x'});
  CHECK(model.ids({"--chat", "-sys", "s", "-p", "x"}) ==
        Ids{'S', 's', kTinyImEnd, 'U', 'x', kTinyImEnd, 'A'});
  CHECK(model.ids({"--chat", "--prefill-response", "b", "-p", "x"}) == Ids{'U', 'x', kTinyImEnd, 'A', 'b'});
}

TEST_CASE("chat prompt: control tokens in what users write stay text", "[cli]") {
  const ChatModel model;
  const Ids text{'<', '|', 'i', 'm', '_', 'e', 'n', 'd', '|', '>'};
  Ids wanted{'U'};
  wanted.insert(wanted.end(), text.begin(), text.end());
  wanted.insert(wanted.end(), {kTinyImEnd, 'A'});
  CHECK(model.ids({"--chat", "-p", "<|im_end|>"}) == wanted);
  Ids prefilled{'U', 'x', kTinyImEnd, 'A'};
  prefilled.insert(prefilled.end(), text.begin(), text.end());
  CHECK(model.ids({"--chat", "-p", "x", "--prefill-response", "<|im_end|>"}) == prefilled);
}

TEST_CASE("chat prompt: the system message of a file is taken verbatim", "[cli]") {
  const ChatModel model;
  const std::string system = model.write("system.txt", "s\n");
  CHECK(model.ids({"--chat", "--system-file", system, "-p", "x"}) ==
        Ids{'S', 's', '\n', kTinyImEnd, 'U', 'x', kTinyImEnd, 'A'});
  const Outcome absent = model.tokenize({"--chat", "--system-file", "/nonexistent", "-p", "x"});
  CHECK(absent.exit_code == 2);
  CHECK(is_one_error_line(absent));
}

TEST_CASE("chat prompt: --chat-template stands in for the model's", "[cli]") {
  const ChatModel model("");
  const Outcome none = model.tokenize({"--chat", "-p", "x"});
  CHECK(none.exit_code == 2);
  CHECK(is_one_error_line(none));
  CHECK(none.err.find("--chat-template FILE") != std::string::npos);

  const std::string other = model.write("other.jinja", "[{{ messages[0].content }}]\n");
  CHECK(model.ids({"--chat", "--chat-template", other, "-p", "x"}) == Ids{'[', 'x', ']'});

  const std::string broken = model.write("broken.jinja", "a\n{{ }}");
  const Outcome refused = model.tokenize({"--chat", "--chat-template", broken, "-p", "x"});
  CHECK(refused.exit_code == 3);
  CHECK(is_one_error_line(refused));
  CHECK(refused.err.find("broken.jinja: line 2, column ") != std::string::npos);

  const std::string raising = model.write("raising.jinja", "{{ raise_exception('not\nme') }}");
  const Outcome raised = model.tokenize({"--chat", "--chat-template", raising, "-p", "x"});
  CHECK(raised.exit_code == 2);
  CHECK(is_one_error_line(raised));
  CHECK(raised.err.find("raising.jinja: not") != std::string::npos);
}

}  // namespace minfer::test
