// Token ids against the oracle: vocabularies of real models, and the prompts of real models' runs.
#include <ctime>
#include <nlohmann/json.hpp>

#include "core/tokenizer/tokenizer.h"
#include "gguf/reader.h"
#include "tests/support/catch.h"
#include "tests/support/oracle.h"

namespace minfer {
namespace {

using Ids = std::vector<TokenId>;

// Ids with what they stand for, from a little before the first difference on.
std::string listed(const Tokenizer& tokenizer, const Ids& ids, size_t from) {
  std::string out;
  for (size_t i = from > 2 ? from - 2 : 0; i < ids.size() && i < from + 6; ++i) {
    const nlohmann::json bytes = tokenizer.token_bytes(ids[i], true);
    out += std::to_string(ids[i]) + ' ' +
           bytes.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace) + ", ";
  }
  return out;
}

struct Tally {
  size_t n_equal = 0;
  size_t n_cases = 0;
  std::string differences;  // the first few

  void compare(const Tokenizer& tokenizer, const std::string& text, const Ids& ids, const Ids& wanted) {
    ++n_cases;
    if (ids == wanted) {
      ++n_equal;
      return;
    }
    if (n_cases - n_equal > 5) return;
    const auto at = std::mismatch(ids.begin(), ids.end(), wanted.begin(), wanted.end()).first - ids.begin();
    differences += nlohmann::json(text).dump(-1, ' ', true) + "\n  from id " + std::to_string(at) + ": " +
                   listed(tokenizer, ids, static_cast<size_t>(at)) +
                   "\n  wanted: " + listed(tokenizer, wanted, static_cast<size_t>(at)) + "\n";
  }
};

// The oracle's program puts BOS before a text that begins with BOS itself; minfer never adds a second one.
Ids without_second_bos(const Tokenizer& tokenizer, Ids ids) {
  const bool twice =
      tokenizer.adds_bos() && ids.size() >= 2 && ids[0] == tokenizer.bos_id() && ids[1] == ids[0];
  if (twice) ids.erase(ids.begin());
  return ids;
}

}  // namespace

TEST_CASE("tokenizer: ids of every vocabulary of the oracle", "[oracle][tokenizer]") {
  const auto files = test::oracle_files("tokenizer", ".json");
  if (files.empty()) MINFER_SKIP("no tokenizer oracle");
  for (const auto& path : files) {
    const auto json = nlohmann::json::parse(test::read_file(path));
    const std::string name = "ggml-vocab-" + json.at("vocab").get<std::string>() + ".gguf";
    const gguf::Reader file = gguf::Reader::open(path.parent_path() / name);
    const auto tokenizer = Tokenizer::from_metadata(file.metadata());
    Tally tally;
    size_t n_round = 0;
    for (const auto& c : json.at("cases")) {
      const auto text = c.at("text").get<std::string>();
      const EncodeOptions options{c.at("add_special").get<bool>(), c.at("parse_special").get<bool>()};
      const Ids ids = tokenizer->encode(text, options);
      tally.compare(*tokenizer, text, ids, without_second_bos(*tokenizer, c.at("ids").get<Ids>()));
      n_round += tokenizer->decode(tokenizer->encode(text, {false, options.parse_special}), true) == text;
    }
    INFO(name << ": " << tally.n_equal << " of " << tally.n_cases << " equal\n" << tally.differences);
    CHECK(tally.n_cases > 0);
    CHECK(tally.n_equal == tally.n_cases);
    CHECK(n_round == tally.n_cases);
  }
}

TEST_CASE("tokenizer: prompts of the real models' runs", "[oracle][tokenizer]") {
  size_t n_models = 0;
  for (const auto& path : test::oracle_files("real", ".json")) {
    const auto json = nlohmann::json::parse(test::read_file(path));
    const auto model = test::find_model_like(json.at("model").get<std::string>());
    if (!model) continue;
    ++n_models;
    const gguf::Reader file = gguf::Reader::open(*model);
    const auto tokenizer = Tokenizer::from_metadata(file.metadata());
    Tally tally;
    for (const auto& c : json.at("cases")) {
      const auto text = c.at("rendered").get<std::string>();
      const EncodeOptions options{.add_special = true, .parse_special = c.at("kind") == "chat"};
      tally.compare(*tokenizer, text, tokenizer->encode(text, options), c.at("prompt_ids").get<Ids>());
      for (const TokenId id : c.at("generated_ids").get<Ids>()) {
        const bool last = id == c.at("generated_ids").back().get<TokenId>();
        if (tokenizer->is_eog(id)) CHECK(last);
      }
    }
    INFO(model->filename().string() << ": " << tally.n_equal << " of " << tally.n_cases << " equal\n"
                                    << tally.differences);
    CHECK(tally.n_cases > 0);
    CHECK(tally.n_equal == tally.n_cases);
  }
  if (n_models == 0) MINFER_SKIP("no real model here");
}

TEST_CASE("tokenizer: a megabyte of anything, and large vocabularies, in time", "[oracle][tokenizer]") {
  // Processor time, since others may share the machine; a sanitizer takes 5 to 10 times as long.
  constexpr double kLimitSeconds = 12;
  const auto seconds_since = [](std::clock_t start) { return double(std::clock() - start) / CLOCKS_PER_SEC; };
  const auto files = test::oracle_files("tokenizer", ".gguf");
  if (files.empty()) MINFER_SKIP("no tokenizer oracle");
  const std::string prose = test::read_file(std::filesystem::path(MINFER_SOURCE_DIR) / "README.md");
  for (const auto& path : files) {
    const gguf::Reader file = gguf::Reader::open(path);
    std::clock_t start = std::clock();
    const auto tokenizer = Tokenizer::from_metadata(file.metadata());
    const double seconds_made = seconds_since(start);
    CHECK(seconds_made < kLimitSeconds / 4);
    std::string figures = "made in " + std::to_string(seconds_made);
    for (const std::string& unit :
         {prose, std::string("a"), std::string(" "), std::string("\n"), std::string("7"),
          std::string("\xf0\x9f\xa6\x99"), std::string("\xff"), std::string("<|im_")}) {
      std::string text;
      while (text.size() < 1000000) text += unit;
      start = std::clock();
      const Ids ids = tokenizer->encode(text, {.add_special = false, .parse_special = true});
      const double seconds = seconds_since(start);
      figures += ", " +
                 (unit == prose
                      ? "prose"
                      : nlohmann::json(unit).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace)) +
                 ' ' + std::to_string(seconds);
      CHECK(seconds < kLimitSeconds);
      CHECK(tokenizer->decode(ids, true) == text);
    }
    std::printf("%s: %s s\n", path.filename().string().c_str(), figures.c_str());
  }
}

}  // namespace minfer
