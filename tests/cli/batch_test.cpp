#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <sstream>

#include "core/json_line.h"
#include "tests/cli/batch_requests.h"
#include "tests/cli/cli.h"
#include "tests/support/catch.h"
#include "tests/support/oracle.h"
#include "tests/support/temp_dir.h"

using namespace minfer::test;
using Json = nlohmann::ordered_json;

namespace {

constexpr int kRequests = 300;

std::vector<Json> records_of(const std::string& output) {
  std::vector<Json> records;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) records.push_back(Json::parse(line));
  return records;
}

// The output with what may differ taken out: the bytes of each line but for its one object of timings.
std::string without_timings(const std::string& output) {
  static const std::string kKey = ",\"timings\":{";
  std::string out;
  for (size_t at = 0; at < output.size();) {
    const size_t key = output.find(kKey, at);
    out += output.substr(at, key == std::string::npos ? key : key - at);
    if (key == std::string::npos) break;
    at = output.find('}', key) + 1;
  }
  return out;
}

std::string text_of(const Json& record) {
  return record.contains("text") ? record["text"].get<std::string>()
                                 : "error: " + record["error"].get<std::string>();
}

// Of records of the plain form: id and text, or error.
std::vector<std::pair<Json, std::string>> answers(const std::string& output) {
  std::vector<std::pair<Json, std::string>> out;
  for (const Json& record : records_of(output)) out.emplace_back(record["id"], text_of(record));
  return out;
}

std::vector<Json> ids(const std::string& output) {
  std::vector<Json> out;
  for (const Json& record : records_of(output)) out.push_back(record["id"]);
  return out;
}

// The batch of every kind and fault, and how it is run.
struct Mixed {
  TempDir dir;
  BatchLines lines = BatchLinesMaker(5).make(kRequests);
  std::string input = dir.write("in.jsonl", lines.text);
  std::string chat_template = dir.write("template", std::string(kBatchTemplate));
  std::string output = dir.path("out.jsonl");

  std::vector<std::string> args(const std::string& threads, const std::string& parallel,
                                const std::string& to) const {
    return {
        "-m",         kSmallModel, "--batch",         input,         "--output", to,         "-n",     "5",
        "-c",         "300",       "--seed",          "11",          "-t",       threads,    "--temp", "0",
        "--parallel", parallel,    "--chat-template", chat_template, "-sys",     "Be brief."};
  }
};

// Removes the output's last bytes, as a machine that goes down may.
void tear(const std::string& path, size_t n_bytes) {
  const auto size = std::filesystem::file_size(path);
  std::filesystem::resize_file(path, size - std::min<uintmax_t>(n_bytes, size));
}

Outcome run_plain(std::vector<std::string> more, const std::string& input) {
  std::vector<std::string> args = {"-m", kSmallModel, "--batch", "-", "-n", "3"};
  args.insert(args.end(), more.begin(), more.end());
  Run run = cli(args);
  run.input = input;
  return run_process(run);
}

}  // namespace

TEST_CASE("batch: 300 requests of every kind and fault, a record for each, in order", "[cli][batch]") {
  const Mixed mixed;
  const Outcome outcome = run_cli(mixed.args("0", "auto", "-"));
  INFO(outcome.err);
  CHECK(outcome.exit_code == 1);  // some failed
  const auto records = records_of(outcome.out);
  REQUIRE(records.size() == kRequests);
  size_t n_failed = 0;
  for (size_t i = 0; i < records.size(); ++i) {
    const Json& record = records[i];
    INFO(record.dump());
    const bool is_openai = mixed.lines.is_openai[i], fails = mixed.lines.fails[i];
    n_failed += fails;
    CHECK(record[is_openai ? "custom_id" : "id"] == mixed.lines.ids[i]);
    CHECK(record.contains("line") == mixed.lines.ids[i].is_null());
    if (is_openai) {
      CHECK(record["error"].is_null() != fails);
      CHECK(record["response"].is_null() == fails);
    } else {
      CHECK(record.contains("error") == fails);
      CHECK(record.contains("text") != fails);
    }
  }
  const std::string said = std::to_string(n_failed) + " of 300 requests failed";
  CHECK(outcome.err.find("error: " + said) != std::string::npos);
}

TEST_CASE("batch: neither threads nor neighbours change a record", "[cli][batch]") {
  const Mixed mixed;
  const std::string alone = without_timings(run_cli(mixed.args("1", "1", "-")).out);
  CHECK(records_of(alone).size() == kRequests);
  CHECK(alone.find("timings") == std::string::npos);
  for (const auto& [threads, parallel] : std::vector<std::pair<std::string, std::string>>{
           {"2", "4"}, {"1", "auto"}, {"2", "auto"}, {"2", "64"}}) {
    INFO("-t " << threads << " --parallel " << parallel);
    CHECK(without_timings(run_cli(mixed.args(threads, parallel, "-")).out) == alone);
  }
}

TEST_CASE("batch: killed ten times and resumed, the file is that of an uninterrupted run", "[cli][batch]") {
  const Mixed mixed;
  const std::string whole = run_cli(mixed.args("2", "auto", "-")).out;
  std::mt19937_64 random(17);
  const std::vector<std::string> threads = {"1", "2"}, parallels = {"1", "4", "auto"};
  size_t n_before = 0;
  int n_killed = 0;
  for (size_t i = 0; i < 10; ++i) {
    auto args = mixed.args(threads[i % 2], parallels[i % 3], mixed.output);
    if (i > 0) args.push_back("--resume");
    Run run = cli(args);
    run.signal = SIGKILL;
    run.interrupt_file = mixed.output;
    run.interrupt_after = n_before + 1 + random() % (whole.size() / 10);
    const Outcome outcome = run_process(run);
    INFO(outcome.err);
    n_killed += outcome.exit_code == 128 + SIGKILL;
    tear(mixed.output, random() % 3 ? random() % 200 : 0);
    n_before = std::filesystem::file_size(mixed.output);
  }
  CHECK(n_killed >= 5);  // the others were done before they were looked at
  auto args = mixed.args("2", "4", mixed.output);
  args.push_back("--resume");
  CHECK(run_cli(args).exit_code == 1);  // failures of earlier runs count
  CHECK(without_timings(read_file(mixed.output)) == without_timings(whole));

  const std::string complete = read_file(mixed.output);
  CHECK(run_cli(args).exit_code == 1);  // nothing left to do
  CHECK(read_file(mixed.output) == complete);
}

TEST_CASE("batch: lines, delimiters, NUL; byte order mark, CRLF, blank lines, no last newline",
          "[cli][batch]") {
  const auto expect = [](const std::string& prompt) {
    return run_cli({"-m", kSmallModel, "-p", prompt, "-n", "3"}).out;
  };
  const std::string one = expect("one"), two = expect("two words");
  using Answers = std::vector<std::pair<Json, std::string>>;
  const std::vector<std::string> lines = {"--batch-format", "lines"};
  CHECK(answers(run_plain(lines, "one\ntwo words\n").out) == Answers{{1, one}, {2, two}});
  CHECK(answers(run_plain(lines, "\xef\xbb\xbfone\r\n\r\n \t\ntwo words").out) ==
        Answers{{1, one}, {4, two}});
  CHECK(answers(run_plain({"--batch-delimiter", "<>"}, "one<>two words<>").out) ==
        Answers{{1, one}, {2, two}});
  CHECK(answers(run_plain({"--batch-null"}, std::string("one\0two words", 13)).out) ==
        Answers{{1, one}, {2, two}});
  CHECK(answers(run_plain({"--batch-delimiter", "\n"}, "one\r\n").out) == Answers{{1, expect("one\r")}});

  const Outcome empty = run_plain({"--batch-delimiter", "<>"}, "<>one");
  CHECK(empty.exit_code == 1);
  CHECK(answers(empty.out) == Answers{{1, "error: the prompt is empty"}, {2, one}});
  const Outcome json =
      run_plain({}, "\xef\xbb\xbf{\"id\":\"a\",\"prompt\":\"one\"}\r\n\r\n{\"prompt\":\"two words\"}");
  CHECK(json.exit_code == 0);
  CHECK(answers(json.out) == Answers{{"a", one}, {3, two}});
  const Outcome none = run_plain({}, "\n\n");
  CHECK(none.exit_code == 0);
  CHECK(none.out.empty());
}

TEST_CASE("batch: the same text as alone, raw and through a chat template", "[cli][batch]") {
  const TempDir dir;
  const std::string chat_template = dir.write("template", std::string(kBatchTemplate));
  const std::vector<std::string> chat = {"--chat-template", chat_template, "-sys", "Be brief."};
  auto alone = std::vector<std::string>{"-m", kSmallModel, "-n", "3", "--chat", "-p", "Hello"};
  alone.insert(alone.end(), chat.begin(), chat.end());
  const std::string expected = run_cli(alone).out;
  CHECK_FALSE(expected.empty());

  const std::string messages = R"({"id":1,"messages":[{"role":"user","content":"Hello"}]})";
  CHECK(text_of(records_of(run_plain(chat, messages).out).at(0)) == expected);
  auto with_chat = chat;
  with_chat.push_back("--chat");
  CHECK(text_of(records_of(run_plain(with_chat, R"({"id":1,"prompt":"Hello"})").out).at(0)) == expected);
  auto prefilled = with_chat;
  prefilled.insert(prefilled.end(), {"--prefill-response", "Well, "});
  auto alone_prefilled = alone;
  alone_prefilled.insert(alone_prefilled.end(), {"--prefill-response", "Well, "});
  const std::string whole = text_of(records_of(run_plain(prefilled, messages).out).at(0));
  CHECK(whole.starts_with("Well, "));
  CHECK(whole == run_cli(alone_prefilled).out);
  // A text completion of OpenAI's is raw whatever the flags say.
  const std::string raw = run_cli({"-m", kSmallModel, "-n", "3", "-p", "Hello"}).out;
  const Json completion =
      records_of(run_plain(with_chat, R"({"custom_id":"a","body":{"prompt":"Hello"}})").out).at(0);
  CHECK(completion["response"]["body"]["choices"][0]["text"] == raw);
  const Outcome no_template = run_plain({}, messages);
  CHECK(no_template.exit_code == 1);
  CHECK(text_of(records_of(no_template.out).at(0)).find("--chat-template") != std::string::npos);
}

TEST_CASE("batch: a draw depends on the request's own seed, or its place in the file", "[cli][batch]") {
  const std::string own = R"({"id":"own","prompt":"one","temperature":2,"seed":5})",
                    none = R"({"id":"none","prompt":"one","temperature":2})";
  const auto run = [](const std::string& input) {
    return records_of(run_plain({"--seed", "1", "-n", "12"}, input).out);
  };
  const auto first = run(own + "\n" + none), second = run("oops\n" + none + "\n" + own);
  CHECK(first.at(0)["seed"] == 5);
  CHECK(first.at(0)["text"] == second.at(2)["text"]);
  const std::string alone =
      run_cli({"-m", kSmallModel, "-p", "one", "--temp", "2", "--seed", "5", "-n", "12"}).out;
  CHECK(first.at(0)["text"] == Json::parse(minfer::json_line(alone)));  // bytes that are no text replaced
  CHECK(first.at(1)["seed"] == second.at(1)["seed"]);
  CHECK(first.at(1)["text"] == second.at(1)["text"]);
  CHECK(run(own + "\n" + R"({"id":"none","prompt":"one","temperature":2})").at(1)["seed"] ==
        first.at(1)["seed"]);
}

TEST_CASE("batch: an output that holds something is kept, and resumed only where it fits", "[cli][batch]") {
  const TempDir dir;
  const std::string input = dir.write("in.jsonl", std::string("{\"id\":\"a\",\"prompt\":\"one\"}"));
  const std::string output = dir.write("out.jsonl", std::string("precious\n"));
  std::vector<std::string> args = {"-m", kSmallModel, "--batch", input, "--output", output, "-n", "1"};
  const auto refused = [&](const std::string& why) {
    const Outcome outcome = run_cli(args);
    INFO(outcome.err);
    CHECK(outcome.exit_code == 2);
    CHECK(outcome.err.find("error: ") != std::string::npos);
    CHECK(outcome.err.find(why) != std::string::npos);
  };
  refused("holds 9 bytes already; --resume");
  args.push_back("--resume");
  refused("line 1: not the record of request 1");
  CHECK(read_file(output) == "precious\n");
  args[5] = input;
  refused("is the input");
  CHECK(read_file(input) == "{\"id\":\"a\",\"prompt\":\"one\"}");
  args[5] = dir.path("no/such/folder");
  refused("No such file or directory");
  args[5] = "/dev/null";
  refused("not a file");
  args[5] = dir.path("new.jsonl");
  CHECK(run_cli(args).exit_code == 0);  // there may be nothing yet
  CHECK(ids(read_file(args[5])) == std::vector<Json>{"a"});
}

TEST_CASE("batch: two runs do not write to one file", "[cli][batch]") {
  const TempDir dir;
  const std::string output = dir.path("out.jsonl");
  const int fd = ::open(output.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  REQUIRE(::flock(fd, LOCK_EX) == 0);
  const Outcome outcome = run_plain({"--output", output}, "{\"prompt\":\"one\"}");
  ::close(fd);
  CHECK(outcome.exit_code == 2);
  CHECK(outcome.err.find("another run is writing to it") != std::string::npos);
  CHECK(run_plain({"--output", output}, "{\"prompt\":\"one\"}").exit_code == 0);
}

TEST_CASE("batch: Ctrl-C keeps the finished records and exits with 130", "[cli][batch]") {
  const Mixed mixed;
  Run run = cli(mixed.args("1", "2", "-"));
  run.interrupt_after = 3000;
  const Outcome outcome = run_process(run);
  CHECK(outcome.exit_code == 130);
  const auto records = records_of(outcome.out);  // whole ones
  CHECK(records.size() > 0);
  CHECK(records.size() < kRequests);
  CHECK(outcome.err.find("interrupted: " + std::to_string(records.size()) + " of 300 records are written") !=
        std::string::npos);
}

TEST_CASE("batch: records that cannot be written end the run, exit 1", "[cli][batch]") {
  const Mixed mixed;
  Run closed = cli(mixed.args("1", "4", "-"));
  closed.close_stdout_after = 100;
  const Outcome outcome = run_process(closed);
  CHECK(outcome.exit_code == 1);
  CHECK(outcome.err.find("error: standard output: Broken pipe\n") != std::string::npos);
  if (::access("/dev/full", W_OK) != 0) MINFER_SKIP("no /dev/full");
  const Outcome full = run_cli(mixed.args("1", "4", "/dev/full"));
  CHECK(full.exit_code == 1);
  CHECK(full.err.find("error: --output /dev/full: No space left on device\n") != std::string::npos);
}

TEST_CASE("batch: -q leaves only the error line; a missing input is one", "[cli][batch]") {
  const Outcome good = run_plain({"-q"}, "{\"prompt\":\"one\",\"foo\":1}");
  CHECK(good.exit_code == 0);
  CHECK(good.err.empty());
  const Outcome bad = run_plain({"-q"}, "oops");
  CHECK(bad.exit_code == 1);
  CHECK(bad.err == "error: 1 of 1 requests failed; their records say why\n");
  const Outcome absent = run_cli({"-m", kSmallModel, "--batch", "/nonexistent"});
  CHECK(absent.exit_code == 2);
  CHECK(is_one_error_line(absent));
  const Outcome warned = run_plain({}, "{\"prompt\":\"one\",\"foo\":1}");
  CHECK(warned.err.find("unknown fields are ignored: 'foo'") != std::string::npos);
  for (const char* word : {"requests", "prompts", "completions", "near-ties", "tokens/s", "at once"}) {
    CHECK(warned.err.find(word) != std::string::npos);
  }
}
