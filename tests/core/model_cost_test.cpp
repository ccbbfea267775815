#include "core/model_cost.h"

#include "tests/support/catch.h"
#include "tests/support/tiny_model.h"

using namespace minfer;
using namespace minfer::test;

namespace {

// Two layers; n_embd 64, n_ff 96, 4 query and 2 KV heads of 16, 264 tokens, matrices in q8_0 (34 bytes for 32
// values). A layer: q 64x64, k and v 32x64, o 64x64, gate and up 96x64, down 64x96 are 30720 weights, 32640
// bytes; its two norms are 512 bytes. The head: 264x64 are 16896 weights, 17952 bytes, and its norm 256. An
// embedding row: 68 bytes.
struct Tiny {
  std::vector<std::byte> bytes = tiny_model();
  gguf::Reader file = gguf::Reader::from_bytes(bytes);
  HParams hparams = HParams::read(file);
  ModelCost cost{hparams, ModelTensors::read(file, hparams), 256};  // f16: 2 * 2 * 32 * 2 layers
};

constexpr double kWeightBytes = 2 * (32640 + 512) + 17952 + 256;

}  // namespace

TEST_CASE("model cost: a prompt behind others", "[core][model_cost]") {
  const Tiny tiny;
  CHECK(tiny.cost.layer_weights() == 2 * 30720);
  CHECK(tiny.cost.weight_bytes() == kWeightBytes);
  // Three tokens behind two see 3, 4 and 5 keys: 12 pairs, of four flops for each of 64 dimensions.
  CHECK(tiny.cost.attention_flops(3, 2) == 12 * 4 * 64);
  const Cost cost = tiny.cost.prefill(3, 2);
  CHECK(cost.flops == 2 * 3 * 61440 + 2 * (12 * 4 * 64) + 2 * 16896);
  CHECK(cost.bytes == kWeightBytes + 3 * 68 + 5 * 256);
}

TEST_CASE("model cost: a decode step reads the weights once for all sequences", "[core][model_cost]") {
  const Tiny tiny;
  CHECK(tiny.cost.attention_bytes(7) == 8 * 128);
  const Cost one = tiny.cost.decode_step(7);
  CHECK(one.flops == 2 * (61440 + 16896) + 2 * (8 * 4 * 64));
  CHECK(one.bytes == kWeightBytes + 68 + 8 * 256);
  const Cost two = tiny.cost.decode_step(7, 2);
  CHECK(two.flops == 2 * one.flops);
  CHECK(two.bytes == one.bytes + 68 + 8 * 256);
}

TEST_CASE("model cost: a tied head and biases count", "[core][model_cost]") {
  TinyModel model;
  model.arch = "qwen2";
  model.tied = true;
  const auto bytes = tiny_model(model);
  const auto file = gguf::Reader::from_bytes(bytes);
  const HParams hparams = HParams::read(file);
  const ModelCost cost(hparams, ModelTensors::read(file, hparams), 0);
  CHECK(cost.weight_bytes() == kWeightBytes + 2 * 4 * (64 + 32 + 32));
}
