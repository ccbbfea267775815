#include "tests/support/parity_case.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "tests/support/oracle.h"

namespace minfer::test {

ParityCase read_parity_case(const std::filesystem::path& path) {
  const auto json = nlohmann::json::parse(read_file(path));
  ParityCase c;
  c.name = path.stem().string();
  c.model = path.parent_path() / json.at("model").get<std::string>();
  json.at("token_ids").get_to(c.token_ids);
  json.at("rows").get_to(c.rows);
  json.at("argmax_every_row").get_to(c.argmax_every_row);
  json.at("n_vocab").get_to(c.n_vocab);
  const std::string bytes = read_file(path.parent_path() / (c.name + ".logits.f32.bin"));
  c.logits.resize(c.rows.size() * static_cast<size_t>(c.n_vocab));
  if (bytes.size() != c.logits.size() * sizeof(float))
    throw std::runtime_error(c.name + ": logits of another size");
  std::memcpy(c.logits.data(), bytes.data(), bytes.size());
  return c;
}

double relative_error(std::span<const float> a, std::span<const float> b) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    difference += std::pow(double{a[i]} - b[i], 2);
    norm += std::pow(double{b[i]}, 2);
  }
  return std::sqrt(difference / norm);
}

std::vector<float> run_chunks(Engine& engine, std::span<const TokenId> ids, size_t chunk) {
  const SeqId seq = engine.kv_reserve(static_cast<int32_t>(ids.size()));
  std::vector<float> logits;
  for (size_t begin = 0; begin < ids.size(); begin += chunk) {
    Batch batch;
    for (size_t i = begin; i < std::min(begin + chunk, ids.size()); ++i) {
      batch.add(seq, static_cast<int32_t>(i), ids[i], Want::kLogits);
    }
    for (const RowResult& r : engine.forward(batch))
      logits.insert(logits.end(), r.logits.begin(), r.logits.end());
  }
  engine.kv_free(seq);
  return logits;
}

std::vector<TokenId> generate_ids(Engine& engine, std::span<const TokenId> prompt, int n, bool by_id) {
  const SeqId seq = engine.kv_reserve(static_cast<int32_t>(prompt.size()) + n);
  Batch batch;
  for (size_t t = 0; t < prompt.size(); ++t) {
    batch.add(seq, static_cast<int32_t>(t), prompt[t],
              t + 1 == prompt.size() ? Want::kArgmax : Want::kNothing);
  }
  std::vector<TokenId> ids = {engine.forward(batch).back().argmax};
  for (int i = 0; i + 1 < n; ++i) {
    Batch step;
    step.add(seq, static_cast<int32_t>(prompt.size()) + i, by_id ? ids.back() : kLastArgmax, Want::kArgmax);
    ids.push_back(engine.forward(step).back().argmax);
  }
  engine.kv_free(seq);
  return ids;
}

}  // namespace minfer::test
