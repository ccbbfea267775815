#include "core/hparams.h"

#include <cmath>

#include "core/error.h"
#include "tests/support/catch.h"
#include "tests/support/log_capture.h"
#include "tests/support/tiny_model.h"

namespace minfer {
namespace {

using gguf::Writer;
using test::TinyModel;

HParams read(const TinyModel& model) {
  const auto bytes = test::tiny_model(model);
  return HParams::read(gguf::Reader::from_bytes(bytes, "m.gguf"));
}

// The message of the error, which must be the model file's; empty where there is none.
std::string refusal(const TinyModel& model) {
  try {
    read(model);
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::kModelFile);
    CHECK(std::string(error.what()).find('\n') == std::string::npos);
    return error.what();
  }
  return "";
}

// A model in which `key` is written by `write` instead.
TinyModel with(const std::string& key, const std::function<void(Writer&, const std::string&)>& write,
               TinyModel model = {}) {
  model.without_keys.insert(key);
  model.add_keys = [key, write](Writer& out) { write(out, key); };
  return model;
}

TinyModel with_u32(const std::string& key, uint32_t value) {
  return with(key, [value](Writer& out, const std::string& k) { out.add_u32(k, value); });
}

TinyModel with_f32(const std::string& key, float value) {
  return with(key, [value](Writer& out, const std::string& k) { out.add_f32(k, value); });
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("hparams: keys are read and what is missing is defaulted", "[hparams]") {
  TinyModel model;
  model.without_keys = {"llama.attention.head_count_kv", "llama.attention.key_length",
                        "llama.attention.value_length"};
  const HParams h = read(model);
  CHECK(h.arch == "llama");
  CHECK(h.name == "tiny llama");
  CHECK(h.n_ctx_train == 256);
  CHECK(h.n_embd == 64);
  CHECK(h.n_layer == 2);
  CHECK(h.n_ff == 96);
  CHECK(h.n_head == 4);
  CHECK(h.n_head_kv == 4);
  CHECK(h.head_dim == 16);
  CHECK(h.n_rot == 16);
  CHECK(h.n_vocab == test::kTinyVocab);
  CHECK(h.rms_eps == 1e-5f);
  CHECK(h.rope_freq_base == 10000.0f);
  CHECK(h.rope_scaling == RopeScaling::kNone);
  CHECK(h.rope_pairing == RopePairing::kNorm);
  CHECK_FALSE(h.has_qk_norm);
}

TEST_CASE("hparams: each architecture has its pairing and norms", "[hparams]") {
  TinyModel model;
  model.arch = "qwen2";
  CHECK(read(model).rope_pairing == RopePairing::kNeox);
  CHECK_FALSE(read(model).has_qk_norm);
  model.arch = "qwen3";
  CHECK(read(model).rope_pairing == RopePairing::kNeox);
  CHECK(read(model).has_qk_norm);
}

TEST_CASE("hparams: another architecture is refused with the supported ones", "[hparams]") {
  for (const char* arch : {"gemma2", "mixtral", "qwen3moe", "phi3", ""}) {
    TinyModel model;
    model.arch = arch;
    const std::string message = refusal(model);
    CHECK(contains(message, gguf::quoted(arch)));
    CHECK(contains(message, "llama, qwen2, qwen3"));
  }
  TinyModel model;
  model.without_keys = {"general.architecture"};
  CHECK(contains(refusal(model), "general.architecture"));
}

TEST_CASE("hparams: mixture of experts is refused", "[hparams]") {
  CHECK(contains(refusal(with_u32("llama.expert_count", 8)), "mixture-of-experts"));
  CHECK(refusal(with_u32("llama.expert_count", 0)).empty());
}

TEST_CASE("hparams: a missing key is named", "[hparams]") {
  for (const char* key : {"context_length", "embedding_length", "block_count", "feed_forward_length",
                          "attention.head_count", "attention.layer_norm_rms_epsilon"}) {
    TinyModel model;
    model.without_keys = {"llama." + std::string(key)};
    const std::string message = refusal(model);
    CHECK(contains(message, "m.gguf"));
    CHECK(contains(message, "llama." + std::string(key)));
    CHECK(contains(message, "missing"));
  }
}

TEST_CASE("hparams: sizes are bounded", "[hparams]") {
  for (const char* key : {"context_length", "embedding_length", "block_count", "feed_forward_length",
                          "attention.head_count", "attention.head_count_kv", "attention.key_length",
                          "attention.value_length", "rope.dimension_count"}) {
    const std::string name = "llama." + std::string(key);
    for (const uint32_t value : {0u, 0x7fffffffu, 0xffffffffu}) {
      const std::string message = refusal(with_u32(name, value));
      CAPTURE(name, value, message);
      CHECK(contains(message, name));
      CHECK(contains(message, std::to_string(value)));
    }
    CHECK_FALSE(refusal(with(name, [](Writer& out, const std::string& k) { out.add_i32(k, -1); })).empty());
    CHECK_FALSE(
        refusal(with(name, [](Writer& out, const std::string& k) { out.add_u64(k, 1ull << 40); })).empty());
    CHECK_FALSE(
        refusal(with(name, [](Writer& out, const std::string& k) { out.add_string(k, "4"); })).empty());
  }
}

TEST_CASE("hparams: reals are finite and in range", "[hparams]") {
  for (const char* key : {"attention.layer_norm_rms_epsilon", "rope.freq_base", "rope.scaling.factor"}) {
    for (const float value : {-1.0f, NAN, INFINITY, -INFINITY, 1e30f}) {
      CAPTURE(key, value);
      CHECK(contains(refusal(with_f32("llama." + std::string(key), value)), key));
    }
  }
}

TEST_CASE("hparams: a size may be an array of one repeated value", "[hparams]") {
  const auto array = [](std::vector<int32_t> values) {
    return with("llama.attention.head_count_kv",
                [values](Writer& out, const std::string& k) { out.add_i32s(k, values); });
  };
  CHECK(read(array({2, 2})).n_head_kv == 2);
  CHECK(contains(refusal(array({2, 1})), "2 in layer 0 but 1 in layer 1"));
  CHECK(contains(refusal(array({})), "empty"));
  CHECK(contains(refusal(array({-2, -2})), "-2"));
}

TEST_CASE("hparams: heads that do not fit are refused with both numbers", "[hparams]") {
  std::string message = refusal(with_u32("llama.attention.head_count_kv", 3));
  CHECK(contains(message, "3 KV heads do not divide 4 heads"));
  message = refusal(with_u32("llama.attention.value_length", 8));
  CHECK(contains(message, "8"));
  CHECK(contains(message, "16"));
  TinyModel model;
  model.without_keys = {"llama.attention.key_length"};
  model.n_head = 6;
  message = refusal(model);
  CHECK(contains(message, "6 heads do not divide an embedding of 64"));
}

TEST_CASE("hparams: rotated values are even and within the head", "[hparams]") {
  CHECK(contains(refusal(with_u32("llama.rope.dimension_count", 15)), "15"));
  CHECK(contains(refusal(with_u32("llama.rope.dimension_count", 18)), "16"));
  CHECK(read(with_u32("llama.rope.dimension_count", 8)).n_rot == 8);
}

TEST_CASE("hparams: rope scaling", "[hparams]") {
  const auto scaled = [](const std::string& type, float factor) {
    TinyModel model;
    model.add_keys = [=](Writer& out) {
      if (!type.empty()) out.add_string("llama.rope.scaling.type", type);
      out.add_f32("llama.rope.scaling.factor", factor);
    };
    return model;
  };
  CHECK(read(scaled("none", 4)).rope_scaling == RopeScaling::kNone);
  CHECK(read(scaled("none", 4)).rope_scale == 1.0f);
  for (const char* type : {"linear", ""}) {  // a factor alone means linear
    CHECK(read(scaled(type, 4)).rope_scaling == RopeScaling::kLinear);
    CHECK(read(scaled(type, 4)).rope_scale == 4.0f);
    CHECK(read(scaled(type, 0)).rope_scaling == RopeScaling::kNone);
  }
  CHECK(read(with_f32("llama.rope.scale_linear", 2)).rope_scale == 2.0f);
  for (const char* type : {"longrope", "su", "dynamic", "YARN"}) {
    const std::string message = refusal(scaled(type, 4));
    CHECK(contains(message, gguf::quoted(type)));
    CHECK(contains(message, "none, linear, yarn"));
  }

  TinyModel yarn = scaled("yarn", 4);
  HParams h = read(yarn);
  CHECK(h.rope_scaling == RopeScaling::kYarn);
  CHECK(h.rope_scale == 4.0f);
  CHECK(h.n_ctx_orig == 256);
  CHECK(h.yarn_ext_factor == 1.0f);
  CHECK(h.yarn_attn_factor == 1.0f);
  CHECK(h.yarn_beta_fast == 32.0f);
  CHECK(h.yarn_beta_slow == 1.0f);
  yarn.add_keys = [](Writer& out) {
    out.add_string("llama.rope.scaling.type", "yarn");
    out.add_f32("llama.rope.scaling.factor", 8);
    out.add_u32("llama.rope.scaling.original_context_length", 64);
    out.add_f32("llama.rope.scaling.attn_factor", 0.5f);
    out.add_f32("llama.rope.scaling.yarn_beta_fast", 16);
  };
  h = read(yarn);
  CHECK(h.n_ctx_orig == 64);
  CHECK(h.yarn_attn_factor == 0.5f);
  CHECK(h.yarn_beta_fast == 16.0f);
}

TEST_CASE("hparams: attention that looks ahead is refused", "[hparams]") {
  const auto causal = [](bool value) {
    return with("llama.attention.causal",
                [value](Writer& out, const std::string& k) { out.add_bool(k, value); });
  };
  CHECK(contains(refusal(causal(false)), "causal"));
  CHECK(refusal(causal(true)).empty());
}

TEST_CASE("hparams: a sliding window that would matter is one warning", "[hparams]") {
  const auto warning = [](uint32_t window) {
    const test::LogCapture log;
    CHECK(refusal(with_u32("llama.attention.sliding_window", window)).empty());
    return log.text();
  };
  CHECK(contains(warning(128), "llama.attention.sliding_window = 128 is not followed"));
  CHECK(warning(0).empty());
  CHECK(warning(256).empty());
}

TEST_CASE("hparams: text out of the file cannot break the message's line", "[hparams]") {
  TinyModel model;
  model.without_keys = {"general.architecture"};
  model.add_keys = [](Writer& out) { out.add_string("general.architecture", "lla\nma\x1b[2J"); };
  CHECK(contains(refusal(model), "lla"));  // refusal() checks for the line
}

TEST_CASE("hparams: a file without tensors is refused", "[hparams]") {
  TinyModel model;
  model.edit_tensor = [](test::TinyTensor& t) { t.skip = true; };
  CHECK(contains(refusal(model), "token_embd.weight"));
}

}  // namespace minfer
