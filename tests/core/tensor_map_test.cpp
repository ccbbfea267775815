#include "core/tensor_map.h"

#include "core/error.h"
#include "tests/support/catch.h"
#include "tests/support/log_capture.h"
#include "tests/support/tiny_model.h"

namespace minfer {
namespace {

using test::TinyModel;
using test::TinyTensor;

std::string refusal(const TinyModel& model) {
  const auto bytes = test::tiny_model(model);
  const auto file = gguf::Reader::from_bytes(bytes, "m.gguf");
  try {
    ModelTensors::read(file, HParams::read(file));
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::kModelFile);
    return error.what();
  }
  return "";
}

// A model in which one tensor is changed.
TinyModel with(const std::string& name, const std::function<void(TinyTensor&)>& change,
               const std::string& arch = "llama") {
  TinyModel model;
  model.arch = arch;
  model.edit_tensor = [name, change](TinyTensor& t) {
    if (t.name == name) change(t);
  };
  return model;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("tensor map: every role is found", "[tensor_map]") {
  for (const char* arch : {"llama", "qwen2", "qwen3"}) {
    CAPTURE(arch);
    TinyModel model;
    model.arch = arch;
    const auto bytes = test::tiny_model(model);
    const auto file = gguf::Reader::from_bytes(bytes, "m.gguf");
    const test::LogCapture log;
    const ModelTensors t = ModelTensors::read(file, HParams::read(file));
    CHECK(log.text().empty());
    REQUIRE(t.layers.size() == 2);
    CHECK(t.layers[1].ffn_down->name == "blk.1.ffn_down.weight");
    CHECK(t.output->name == "output.weight");
    CHECK((t.layers[0].attn_q_bias != nullptr) == (model.arch == "qwen2"));
    CHECK((t.layers[0].attn_k_norm != nullptr) == (model.arch == "qwen3"));
    CHECK(t.rope_freqs == nullptr);
  }
}

TEST_CASE("tensor map: a tied head is the embedding", "[tensor_map]") {
  TinyModel model;
  model.tied = true;
  const auto bytes = test::tiny_model(model);
  const auto file = gguf::Reader::from_bytes(bytes, "m.gguf");
  const ModelTensors t = ModelTensors::read(file, HParams::read(file));
  CHECK(t.output == t.token_embd);
}

TEST_CASE("tensor map: a missing tensor is named", "[tensor_map]") {
  for (const char* name :
       {"token_embd.weight", "output_norm.weight", "blk.0.attn_norm.weight", "blk.0.attn_q.weight",
        "blk.1.attn_k.weight", "blk.1.attn_v.weight", "blk.0.attn_output.weight", "blk.1.ffn_norm.weight",
        "blk.0.ffn_gate.weight", "blk.0.ffn_up.weight", "blk.1.ffn_down.weight"}) {
    const std::string message = refusal(with(name, [](TinyTensor& t) { t.skip = true; }));
    CAPTURE(message);
    CHECK(contains(message, name));
    CHECK(contains(message, "missing"));
  }
  CHECK(contains(refusal(with(
                     "blk.1.attn_q_norm.weight", [](TinyTensor& t) { t.skip = true; }, "qwen3")),
                 "blk.1.attn_q_norm.weight is missing"));
}

TEST_CASE("tensor map: a wrong shape is refused with both shapes", "[tensor_map]") {
  const auto reshape = [](uint64_t cols, uint64_t rows) {
    return [=](TinyTensor& t) {
      t.dims = {cols, rows};
      t.values.resize(cols * rows);
    };
  };
  std::string message = refusal(with("blk.0.attn_k.weight", reshape(64, 64)));
  CHECK(contains(message, "blk.0.attn_k.weight has shape [64, 64], needs [64, 32]"));
  message = refusal(with("output.weight", reshape(64, 260)));
  CHECK(contains(message, "output.weight has shape [64, 260], needs [64, 264]"));
  message = refusal(with("blk.1.ffn_norm.weight", [](TinyTensor& t) {
    t.dims = {32};
    t.values.resize(32);
  }));
  CHECK(contains(message, "blk.1.ffn_norm.weight has shape [32], needs [64]"));
  message = refusal(with(
      "blk.0.attn_q.bias",
      [](TinyTensor& t) {
        t.dims = {32};
        t.values.resize(32);
      },
      "qwen2"));
  CHECK(contains(message, "blk.0.attn_q.bias has shape [32], needs [64]"));
}

TEST_CASE("tensor map: a type that minfer does not decode is refused by name", "[tensor_map]") {
  TinyModel model;
  model.edit_tensor = [](TinyTensor& t) { t.skip = t.name == "blk.1.ffn_up.weight"; };
  model.add_tensors = [](gguf::Writer& out) {
    const uint64_t dims[] = {64, 96};
    const std::vector<std::byte> data(64 * 96 * 4);
    out.add_tensor("blk.1.ffn_up.weight", gguf::TensorType::kI32, dims, data);
  };
  const std::string message = refusal(model);
  CHECK(contains(message, "blk.1.ffn_up.weight"));
  CHECK(contains(message, "i32"));
}

TEST_CASE("tensor map: unknown tensors are named in one warning", "[tensor_map]") {
  TinyModel model;
  model.add_tensors = [](gguf::Writer& out) {
    const uint64_t dims[] = {8};
    const std::vector<std::byte> data(32);
    for (int i = 0; i < 20; ++i)
      out.add_tensor("extra." + std::to_string(i), gguf::TensorType::kF32, dims, data);
  };
  const test::LogCapture log;
  CHECK(refusal(model).empty());
  const std::string text = log.text();
  CHECK(contains(text, "20 tensors"));
  CHECK(contains(text, "extra.0"));
  CHECK(std::count(text.begin(), text.end(), '\n') == 1);
}

}  // namespace minfer
