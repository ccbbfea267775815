#include "core/tokenizer/pretokenize.h"

#include <random>

#include "tests/support/catch.h"

namespace minfer {
namespace {

using Pieces = std::vector<std::string>;

Pieces pieces(std::string_view name, std::string_view text) {
  Pieces out;
  uint32_t begin = 0;
  for (const uint32_t end : Pretokenizer(name).split(text)) {
    out.emplace_back(text.substr(begin, end - begin));
    begin = end;
  }
  return out;
}

std::vector<std::string> all_names() {
  std::vector<std::string> names;
  const std::string known = known_pretokenizers();
  for (size_t at = 0; at < known.size();) {
    const size_t comma = std::min(known.find(", ", at), known.size());
    names.push_back(known.substr(at, comma - at));
    at = comma + 2;
  }
  return names;
}

}  // namespace

TEST_CASE("pretokenize: gpt-2 keeps a space with its word and cuts contractions", "[tokenizer]") {
  CHECK(pieces("gpt-2", "I'll pay  $12,000 today\n\n ok") ==
        Pieces{"I", "'ll", " pay", " ", " $", "12", ",", "000", " today", "\n\n", " ok"});
  CHECK(pieces("gpt-2", "") == Pieces{});
}

TEST_CASE("pretokenize: llama-bpe takes digits by three, qwen2 one by one", "[tokenizer]") {
  CHECK(pieces("llama-bpe", "x 1234567 'VE\n\n") == Pieces{"x", " ", "123", "456", "7", " '", "VE", "\n\n"});
  CHECK(pieces("qwen2", "don'T 42 !?\n x") == Pieces{"don", "'T", " ", "4", "2", " !?\n", " x"});
}

TEST_CASE("pretokenize: several expressions each cut what the one before left", "[tokenizer]") {
  CHECK(pieces("smollm", "a12 b") == Pieces{"a", "1", "2", " b"});
  CHECK(pieces("starcoder", "x  1") == Pieces{"x", "  ", "1"});
  CHECK(pieces("falcon", "Hi, 12345!") == Pieces{"Hi", ",", " ", "123", "45", "!"});
  CHECK(pieces("default", "a=1234") == Pieces{"a", "=", "123", "4"});
  CHECK(pieces("deepseek-llm", "a\r\nb 123 \xe4\xb8\xad  ") ==
        Pieces{"a", "\r", "\n", "b", " ", "123", " ", "\xe4\xb8\xad", "  "});
  CHECK(pieces("deepseek-coder", "ab, 12") == Pieces{"ab", ",", " ", "1", "2"});
  CHECK(pieces("deepseek-v3", "1234 \xe4\xb8\xad\xe6\x96\x87x") ==
        Pieces{"123", "4", " ", "\xe4\xb8\xad\xe6\x96\x87", "x"});
  CHECK(pieces("tekken", "HelloWorld FOO1") == Pieces{"Hello", "World", " FOO", "1"});
  CHECK(pieces("gpt-4o", "it's FOOBar") == Pieces{"it's", " FOOBar"});
}

TEST_CASE("pretokenize: white space is Unicode's White_Space", "[tokenizer]") {
  // U+0085 and U+3000 are white space, U+180E and U+200B no longer are.
  CHECK(pieces("gpt-2",
               "a\xc2\x85\xe3\x80\x80"
               "b") == Pieces{"a", "\xc2\x85", "\xe3\x80\x80", "b"});
  CHECK(pieces("gpt-2",
               "a\xe1\xa0\x8e\xe2\x80\x8b"
               "b") == Pieces{"a", "\xe1\xa0\x8e\xe2\x80\x8b", "b"});
}

TEST_CASE("pretokenize: bytes that are no UTF-8 are pieces of their own", "[tokenizer]") {
  CHECK(pieces("gpt-2",
               "ab\xff\xfe"
               "cd\xe2\x82") == Pieces{"ab", "\xff\xfe", "cd", "\xe2\x82"});
  CHECK(pieces("gpt-2", std::string_view("a\0b", 3)) == Pieces{"a", std::string(1, '\0'), "b"});
}

TEST_CASE("pretokenize: names are looked up exactly", "[tokenizer]") {
  CHECK(find_pretokenizer("nonesuch") == nullptr);
  CHECK(find_pretokenizer("") == nullptr);
  REQUIRE(find_pretokenizer("llama3") != nullptr);
  CHECK(find_pretokenizer("llama3")->ignore_merges);
  CHECK(find_pretokenizer("llama3")->add_bos);
  CHECK_FALSE(find_pretokenizer("qwen2")->ignore_merges);
  for (const std::string& name : all_names()) CHECK(find_pretokenizer(name) != nullptr);
}

TEST_CASE("pretokenize: every pre-tokenizer cuts any bytes into pieces that make up the text",
          "[tokenizer]") {
  std::mt19937 random(5);
  for (const std::string& name : all_names()) {
    const Pretokenizer pretokenizer(name);
    for (int round = 0; round < 40; ++round) {
      std::string text(random() % 200, ' ');
      for (char& c : text)
        c = random() % 4 ? "ab1 \n'sA\xc3\xa9.,"[random() % 12] : static_cast<char>(random());
      uint32_t begin = 0;
      for (const uint32_t end : pretokenizer.split(text)) {
        REQUIRE(end > begin);
        begin = end;
      }
      REQUIRE(begin == text.size());
    }
  }
}

TEST_CASE("pretokenize: every pre-tokenizer takes a megabyte of one character", "[tokenizer]") {
  for (const std::string& name : all_names()) {
    const Pretokenizer pretokenizer(name);
    for (const std::string unit :
         {"a", "A", " ", "\n", "7", "!", "\x01", "\xf0\x9f\xa6\x99", "\xe4\xb8\xad", " \t"}) {
      std::string text;
      while (text.size() < 1000000) text += unit;
      for (const char* tail : {"", "\xe4\xb8\xad"}) {
        const auto ends = pretokenizer.split(text + tail);
        REQUIRE(ends.back() == text.size() + std::string_view(tail).size());
      }
    }
  }
}

}  // namespace minfer
