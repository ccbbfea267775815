// A tiny model of the parity oracle, with its true logits; running one through an engine.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "core/engine.h"

namespace minfer::test {

struct ParityCase {
  std::string name;
  std::filesystem::path model;
  std::vector<TokenId> token_ids;
  std::vector<int32_t> rows;              // the positions whose logits are known
  std::vector<TokenId> argmax_every_row;  // [token_ids]
  std::vector<float> logits;              // [rows, n_vocab]
  int32_t n_vocab = 0;

  std::span<const float> truth(size_t i) const {
    return std::span(logits).subspan(i * static_cast<size_t>(n_vocab), static_cast<size_t>(n_vocab));
  }
};

ParityCase read_parity_case(const std::filesystem::path& json);

// |a - b| / |b|, L2 norms.
double relative_error(std::span<const float> a, std::span<const float> b);

// The logits [n, n_vocab] of `ids` in a sequence of their own, `chunk` rows at a time.
std::vector<float> run_chunks(Engine& engine, std::span<const TokenId> ids, size_t chunk);

// n tokens after `prompt`, the likeliest each time; a step is given the last one by its id, or as
// kLastArgmax.
std::vector<TokenId> generate_ids(Engine& engine, std::span<const TokenId> prompt, int n, bool by_id);

}  // namespace minfer::test
