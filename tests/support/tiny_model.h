// Tiny but whole models with random weights and a tokenizer, built in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "gguf/writer.h"

namespace minfer::test {

// A tensor on its way into the file: a test may change anything.
struct TinyTensor {
  std::string name;
  gguf::TensorType type;
  std::vector<uint64_t> dims;  // dims[0] is contiguous
  std::vector<float> values;
  bool skip = false;
};

struct TinyModel {
  std::string arch = "llama";  // llama, qwen2 (with biases), qwen3 (with norms of q and k)
  uint32_t n_layer = 2;
  uint32_t n_embd = 64;
  uint32_t n_ff = 96;
  uint32_t n_head = 4;
  uint32_t n_head_kv = 2;
  uint32_t head_dim = 16;
  uint32_t n_ctx = 256;
  uint32_t n_extra_rows = 0;  // rows of the embedding and the head beyond the vocabulary
  bool tied = false;
  gguf::TensorType type = gguf::TensorType::kQ8_0;  // of the matrices; vectors are f32
  uint64_t seed = 1;
  std::string chat_template;  // left out where empty

  std::set<std::string> without_keys;              // keys that are not written, full names
  std::function<void(gguf::Writer&)> add_keys;     // more keys, after the model's own
  std::function<void(TinyTensor&)> edit_tensor;    // called for every tensor before it is written
  std::function<void(gguf::Writer&)> add_tensors;  // more tensors
};

// The byte-level BPE vocabulary of every tiny model: 256 bytes in the order of their values (id = byte), the
// merges "th", "he", "the", " t", " the", then the control tokens below.
inline constexpr int32_t kTinyEndOfText = 261;  // "<|endoftext|>", BOS and EOS
inline constexpr int32_t kTinyImStart = 262;    // "<|im_start|>"
inline constexpr int32_t kTinyImEnd = 263;      // "<|im_end|>"
inline constexpr int32_t kTinyVocab = 264;

std::vector<std::byte> tiny_model(const TinyModel& model = {});

}  // namespace minfer::test
