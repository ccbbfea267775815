// A batch file with requests of every kind and every fault, drawn from a seed.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

namespace minfer::test {

// A chat template with roles, which no small model brings along.
inline constexpr const char* kBatchTemplate =
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}";

struct BatchLines {
  std::string text;                         // the file
  std::vector<nlohmann::ordered_json> ids;  // what each record has to carry; null: its line
  std::vector<bool> is_openai, fails;
};

class BatchLinesMaker {
 public:
  explicit BatchLinesMaker(uint64_t seed) : random_(seed) {}

  // n requests, lines of which are blank or end with CRLF here and there; the last one has no newline.
  BatchLines make(int n) {
    lines_.text = "\xef\xbb\xbf";
    for (int i = 0; i < n; ++i) {
      if (below(9) == 0) lines_.text += below(2) ? "\n" : " \t\r\n";
      add(i);
      if (i + 1 < n) lines_.text += below(4) ? "\n" : "\r\n";
    }
    return std::move(lines_);
  }

 private:
  using Json = nlohmann::ordered_json;

  uint64_t below(uint64_t n) { return random_() % n; }

  std::string words(uint64_t n) {
    static const char* const kWords[] = {"the",    "of", "a",  "é",    "to",   "in",
                                         "\"is\"", "12", "\n", "word", "你好", "x"};
    std::string text;
    for (uint64_t i = 0; i < n; ++i) text += std::string(i ? " " : "") + kWords[below(std::size(kWords))];
    return text;
  }

  // Prompts that share a beginning are among them.
  std::string question() {
    return (below(3) ? "" : "One two three four five six seven eight nine ten. ") + words(1 + below(24));
  }

  Json options() {
    Json body = {{"max_tokens", below(7)}};
    if (below(3) == 0) body["temperature"] = 0.8;
    if (below(6) == 0) body["seed"] = below(1000);
    if (below(5) == 0) body["stop"] = below(2) ? Json("e") : Json({"xyz", "a"});
    if (below(6) == 0) body["repetition_penalty"] = 1.3;
    if (below(6) == 0) body["logit_bias"] = {{"5", 3.5}, {"7", -100}};
    if (below(4) == 0) body["ignore_eos"] = true;
    return body;
  }

  Json messages() {
    Json messages = Json::array();
    if (below(2)) messages.push_back({{"role", "system"}, {"content", words(3)}});
    messages.push_back({{"role", "user"}, {"content", {{{"type", "text"}, {"text", question()}}}}});
    return messages;
  }

  void put(const std::string& line, Json id, bool is_openai, bool fails) {
    lines_.text += line;
    lines_.ids.push_back(std::move(id));
    lines_.is_openai.push_back(is_openai);
    lines_.fails.push_back(fails);
  }

  void put_plain(Json id, const Json& fields, bool fails = false) {
    Json line = {{"id", id}};
    line.update(fields);
    put(line.dump(), std::move(id), false, fails);
  }

  void put_openai(Json id, bool is_chat, Json body, bool fails = false) {
    const Json line = {{"custom_id", id},
                       {"method", "POST"},
                       {"url", is_chat ? "/v1/chat/completions" : "/v1/completions"},
                       {"body", std::move(body)}};
    put(line.dump(), std::move(id), true, fails);
  }

  // Each kind at least once; faults (1 to 10) now and then.
  int kind_of(int i) {
    const int kind = i < 20 ? i : static_cast<int>(below(20));
    return i < 20 || kind > 10 || below(4) == 0 ? kind : 11 + kind % 9;
  }

  void add(int i) {
    const Json id = below(4) ? Json("request-" + std::to_string(i)) : Json(1000 + i);
    Json body = options();
    switch (kind_of(i)) {
      case 0:
        return put_plain(i == 0 ? Json("the first") : id, {{"prompt", question()}});
      case 1:
        return put("{\"prompt\": oops", nullptr, false, true);
      case 2:
        return put("[1, 2]", nullptr, false, true);
      case 3:
        return put("{\"id\":\"u\",\"prompt\":\"\xff\xfe\"}", nullptr, false, true);
      case 4:
        return put_plain("the first", {{"prompt", "again"}}, true);
      case 5:
        return put_plain(id, {{"prompt", words(400)}}, true);  // too long
      case 6:
        return put_plain(id, {{"prompt", 7}}, true);
      case 7:
        return put_plain(id, {{"prompt", "x"}, {"temperature", -1}}, true);
      case 8:
        return put_openai(id, true, {{"messages", messages()}, {"n", 2}}, true);
      case 9:
        return put_openai(id, false, {{"prompt", ""}}, true);
      case 10:
        return put_plain(id, {{"prompt", "x"}, {"logit_bias", {{"99999999", 1}}}}, true);
      case 11:
      case 12:
        body["logprobs"] = 2;
        [[fallthrough]];
      case 13:
      case 14:
        body["prompt"] = question();
        return put_plain(id, body);
      case 15:
        body["messages"] = messages();
        return put_plain(id, body);
      case 16:
        body["logprobs"] = true;
        body["top_logprobs"] = 1;
        [[fallthrough]];
      case 17:
        body["messages"] = messages();
        return put_openai(id, true, body);
      case 18:
        body["logprobs"] = 1;
        [[fallthrough]];
      default:
        body["prompt"] = question();
        return put_openai(id, false, body);
    }
  }

  std::mt19937_64 random_;
  BatchLines lines_;
};

}  // namespace minfer::test
