#include "core/tokenizer/merge.h"

#include <map>
#include <random>

#include "tests/support/catch.h"

namespace minfer {
namespace {

using Rules = std::map<std::pair<TokenId, TokenId>, Merge>;

// The definition: look at all pairs, merge the best, leftmost first, until none merges.
std::vector<TokenId> merged_plainly(std::vector<TokenId> ids, const Rules& rules) {
  while (true) {
    size_t best = ids.size();
    Merge chosen;
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      const auto rule = rules.find({ids[i], ids[i + 1]});
      if (rule == rules.end() || (best < ids.size() && rule->second.rank >= chosen.rank)) continue;
      best = i;
      chosen = rule->second;
    }
    if (best == ids.size()) return ids;
    ids[best] = chosen.id;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

std::vector<TokenId> merged(const std::vector<TokenId>& ids, const Rules& rules) {
  Merger merger;
  for (size_t i = 0; i < ids.size(); ++i) merger.push(static_cast<uint32_t>(i), 1, ids[i]);
  merger.run([&](const Symbol& l, const Symbol& r) {
    const auto rule = rules.find({l.id, r.id});
    return rule == rules.end() ? Merge{} : rule->second;
  });
  std::vector<TokenId> out;
  uint32_t at = 0;
  merger.for_each([&](const Symbol& symbol) {
    REQUIRE(symbol.begin == at);
    at += symbol.size;
    out.push_back(symbol.id);
  });
  REQUIRE(at == ids.size());
  return out;
}

}  // namespace

TEST_CASE("merge: the heap does what trying all pairs does", "[tokenizer]") {
  std::mt19937 random(11);
  for (int round = 0; round < 3000; ++round) {
    const auto below = [&](uint32_t n) { return static_cast<TokenId>(random() % n); };
    const uint32_t n_letters = 1 + random() % 4;
    Rules rules;
    const uint32_t n_rules = random() % 12;
    for (uint32_t i = 0; i < n_rules; ++i) {
      // Products of products too; ranks may be equal.
      const uint32_t n_known = n_letters + i;
      rules.insert({{below(n_known), below(n_known)},
                    {static_cast<uint32_t>(random() % 8), static_cast<TokenId>(n_letters + i)}});
    }
    std::vector<TokenId> ids(random() % 40);
    for (TokenId& id : ids) id = below(n_letters);
    REQUIRE(merged(ids, rules) == merged_plainly(ids, rules));
  }
}

TEST_CASE("merge: equal ranks go from the left", "[tokenizer]") {
  const Rules rules{{{0, 0}, {5, 1}}};
  CHECK(merged({0, 0, 0}, rules) == std::vector<TokenId>{1, 0});
  CHECK(merged({0, 0, 0, 0, 0}, rules) == std::vector<TokenId>{1, 1, 0});
  CHECK(merged({}, rules).empty());
}

}  // namespace minfer
