#include "core/hparams.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>

#include "core/error.h"
#include "core/warn_once.h"

namespace minfer {
namespace {

struct Architecture {
  std::string_view name;
  RopePairing pairing;
  bool has_qk_norm;
};

constexpr std::array kArchitectures{
    Architecture{"llama", RopePairing::kNorm, false},
    Architecture{"qwen2", RopePairing::kNeox, false},
    Architecture{"qwen3", RopePairing::kNeox, true},
};

// Far above any model, low enough that no product of two sizes, or KV bytes of 2^31 tokens, leaves 64 bits.
constexpr int64_t kMaxLayers = 1024;
constexpr int64_t kMaxEmbd = 1 << 18;
constexpr int64_t kMaxFf = 1 << 20;
constexpr int64_t kMaxHeads = 1 << 14;
constexpr int64_t kMaxHeadDim = 1 << 13;
constexpr int64_t kMaxContext = 1 << 30;
constexpr int64_t kMaxVocab = 1 << 24;

class KeyReader {
 public:
  KeyReader(const gguf::Reader& file, std::string arch) : file_(file), arch_(std::move(arch)) {}

  std::string full(std::string_view key) const { return fmt::format("{}.{}", arch_, key); }

  [[noreturn]] void refuse(std::string_view key, std::string_view what) const {
    throw Error(ExitCode::kModelFile,
                fmt::format("{}: key {}: {}", gguf::printable(file_.name()), full(key), what));
  }

  // One value, or an array that repeats one value (a layer each): per-layer sizes are not supported.
  std::optional<int64_t> optional_size(std::string_view key, int64_t max) const {
    const std::string name = full(key);
    const gguf::Entry* entry = file_.metadata().find(name);
    if (!entry) return std::nullopt;
    int64_t value = 0;
    if (entry->type == gguf::ValueType::kArray) {
      const std::vector<int32_t> values = file_.metadata().get_i32s(name).value();
      if (values.empty()) refuse(key, "an empty array");
      const auto other =
          std::find_if(values.begin(), values.end(), [&](int32_t v) { return v != values[0]; });
      if (other != values.end()) {
        refuse(key,
               fmt::format("{} in layer 0 but {} in layer {}: sizes that differ by layer are not supported",
                           values[0], *other, other - values.begin()));
      }
      value = values[0];
    } else {
      value = bounded(key, file_.metadata().get_u64(name).value());
    }
    if (value < 1 || value > max) refuse(key, fmt::format("{} is not in 1..{}", value, max));
    return value;
  }

  int32_t size(std::string_view key, int64_t max, std::optional<int64_t> fallback = std::nullopt) const {
    const std::optional<int64_t> value = optional_size(key, max);
    if (!value && !fallback) refuse(key, "missing");
    return static_cast<int32_t>(value ? *value : *fallback);
  }

  std::optional<float> optional_real(std::string_view key, double min, double max) const {
    const std::optional<double> value = file_.metadata().get_f64(full(key));
    if (!value) return std::nullopt;
    if (!(*value >= min && *value <= max)) refuse(key, fmt::format("{} is not in {}..{}", *value, min, max));
    return static_cast<float>(*value);
  }

  float real(std::string_view key, double min, double max, float fallback) const {
    return optional_real(key, min, max).value_or(fallback);
  }

 private:
  int64_t bounded(std::string_view key, uint64_t value) const {
    if (value > static_cast<uint64_t>(kMaxContext)) refuse(key, fmt::format("{} is too large", value));
    return static_cast<int64_t>(value);
  }

  const gguf::Reader& file_;
  std::string arch_;
};

const Architecture& find_architecture(const gguf::Reader& file, std::string_view name) {
  const auto found = std::find_if(kArchitectures.begin(), kArchitectures.end(),
                                  [&](const Architecture& a) { return a.name == name; });
  if (found != kArchitectures.end()) return *found;
  std::string known;
  for (const Architecture& a : kArchitectures)
    known += fmt::format("{}{}", known.empty() ? "" : ", ", a.name);
  throw Error(ExitCode::kModelFile, fmt::format("{}: architecture {} is not supported; supported are {}",
                                                gguf::printable(file.name()), gguf::quoted(name), known));
}

void read_heads(const KeyReader& keys, HParams& h) {
  h.n_head = keys.size("attention.head_count", kMaxHeads);
  h.n_head_kv = keys.size("attention.head_count_kv", kMaxHeads, h.n_head);
  if (h.n_head % h.n_head_kv != 0) {
    keys.refuse("attention.head_count_kv",
                fmt::format("{} KV heads do not divide {} heads", h.n_head_kv, h.n_head));
  }
  const std::optional<int64_t> key_length = keys.optional_size("attention.key_length", kMaxHeadDim);
  if (!key_length && h.n_embd % h.n_head != 0) {
    keys.refuse("attention.head_count",
                fmt::format("{} heads do not divide an embedding of {}, and attention.key_length is missing",
                            h.n_head, h.n_embd));
  }
  h.head_dim = static_cast<int32_t>(key_length.value_or(h.n_embd / h.n_head));
  if (h.head_dim > kMaxHeadDim) {
    keys.refuse("attention.head_count",
                fmt::format("a head of {} values is over {}", h.head_dim, kMaxHeadDim));
  }
  const int32_t value_length = keys.size("attention.value_length", kMaxHeadDim, h.n_embd / h.n_head);
  if (value_length != h.head_dim) {
    keys.refuse(
        "attention.value_length",
        fmt::format("{}, but attention.key_length is {}: they must be equal", value_length, h.head_dim));
  }
  if (int64_t{h.n_head} * h.head_dim > kMaxEmbd) {
    keys.refuse("attention.key_length",
                fmt::format("{} heads of {} are over {} values", h.n_head, h.head_dim, kMaxEmbd));
  }
}

void read_rope_scaling(const gguf::Reader& file, const KeyReader& keys, HParams& h) {
  constexpr double kMaxFactor = 1e6;
  std::optional<float> factor = keys.optional_real("rope.scaling.factor", 0, kMaxFactor);
  if (!factor) factor = keys.optional_real("rope.scale_linear", 0, kMaxFactor);
  // A file that gives a factor and no type means linear; a factor of 0 means none.
  const std::string_view type = file.metadata().get_string(keys.full("rope.scaling.type")).value_or("linear");
  if (type == "yarn") {
    h.rope_scaling = RopeScaling::kYarn;
  } else if (type == "linear") {
    h.rope_scaling = factor && *factor != 0 && *factor != 1 ? RopeScaling::kLinear : RopeScaling::kNone;
  } else if (type != "none") {
    keys.refuse("rope.scaling.type",
                fmt::format("{} is not supported; supported are none, linear, yarn", gguf::quoted(type)));
  }
  // Both spellings of the attention factor multiply each other; this one counts whatever the scaling is.
  h.yarn_attn_factor = keys.real("rope.scaling.attn_factor", 1e-3, 1e3, 1.0f);
  if (h.rope_scaling == RopeScaling::kNone) return;

  h.rope_scale = factor && *factor != 0 ? *factor : 1.0f;
  if (h.rope_scale < 1e-3f)
    keys.refuse("rope.scaling.factor", fmt::format("{} is under 0.001", h.rope_scale));
  if (h.rope_scaling != RopeScaling::kYarn) return;

  h.n_ctx_orig = keys.size("rope.scaling.original_context_length", kMaxContext, h.n_ctx_train);
  h.yarn_ext_factor = keys.real("rope.scaling.yarn_ext_factor", 0, 1, 1.0f);
  h.yarn_attn_factor *= keys.real("rope.scaling.yarn_attn_factor", 1e-3, 1e3, 1.0f);
  h.yarn_beta_fast = keys.real("rope.scaling.yarn_beta_fast", 1e-3, 1e6, 32.0f);
  h.yarn_beta_slow = keys.real("rope.scaling.yarn_beta_slow", 1e-3, 1e6, 1.0f);
  if (keys.real("rope.scaling.yarn_log_multiplier", -1e6, 1e6, 0.0f) != 0) {
    keys.refuse("rope.scaling.yarn_log_multiplier", "is not supported");
  }
}

void read_rope(const gguf::Reader& file, const KeyReader& keys, HParams& h) {
  h.n_rot = keys.size("rope.dimension_count", kMaxHeadDim, h.head_dim);
  if (h.n_rot > h.head_dim || h.n_rot % 2 != 0) {
    keys.refuse("rope.dimension_count",
                fmt::format("{} must be even and at most the head's {} values", h.n_rot, h.head_dim));
  }
  h.rope_freq_base = keys.real("rope.freq_base", 1.0001, 1e15, 10000.0f);
  h.n_ctx_orig = h.n_ctx_train;
  read_rope_scaling(file, keys, h);
}

// Keys that change what is computed and that minfer does not follow.
void refuse_variants(const gguf::Reader& file, const KeyReader& keys, const HParams& h) {
  if (const auto n = file.metadata().get_u64(keys.full("expert_count")); n.value_or(0) > 0) {
    keys.refuse("expert_count", fmt::format("{}: mixture-of-experts models are not supported", *n));
  }
  if (!file.metadata().get_bool(keys.full("attention.causal")).value_or(true)) {
    keys.refuse("attention.causal", "false: only causal attention is supported");
  }
  const gguf::Entry* window = file.metadata().find(keys.full("attention.sliding_window"));
  if (!window || window->type == gguf::ValueType::kArray) return;
  const uint64_t n = file.metadata().get_u64(window->key).value_or(0);
  if (n > 0 && n < static_cast<uint64_t>(h.n_ctx_train)) {
    warn_once(
        fmt::format("{}: {} = {} is not followed: attention is full, and past {} tokens the model may differ",
                    gguf::printable(file.name()), window->key, n, n));
  }
}

int32_t count_vocab(const gguf::Reader& file) {
  const gguf::Tensor* embd = file.find("token_embd.weight");
  if (!embd) {
    throw Error(ExitCode::kModelFile,
                fmt::format("{}: tensor token_embd.weight is missing (the file has {} tensors)",
                            gguf::printable(file.name()), file.tensors().size()));
  }
  const uint64_t n = embd->dims[1];
  if (embd->n_dims != 2 || n < 1 || n > static_cast<uint64_t>(kMaxVocab)) {
    throw Error(
        ExitCode::kModelFile,
        fmt::format("{}: tensor token_embd.weight has {} dimensions and {} rows; 2 and 1..{} are supported",
                    gguf::printable(file.name()), embd->n_dims, n, kMaxVocab));
  }
  return static_cast<int32_t>(n);
}

HParams read_keys(const gguf::Reader& file) {
  HParams h;
  const auto arch = file.metadata().get_string("general.architecture");
  if (!arch)
    throw Error(ExitCode::kModelFile,
                fmt::format("{}: key general.architecture is missing", gguf::printable(file.name())));
  const Architecture& known = find_architecture(file, *arch);
  const KeyReader keys(file, std::string(*arch));
  h.arch = *arch;
  h.name = file.metadata().get_string("general.name").value_or("");
  h.rope_pairing = known.pairing;
  h.has_qk_norm = known.has_qk_norm;

  h.n_ctx_train = keys.size("context_length", kMaxContext);
  h.n_embd = keys.size("embedding_length", kMaxEmbd);
  h.n_layer = keys.size("block_count", kMaxLayers);
  h.n_ff = keys.size("feed_forward_length", kMaxFf);
  const auto eps = keys.optional_real("attention.layer_norm_rms_epsilon", 0, 1);
  if (!eps) keys.refuse("attention.layer_norm_rms_epsilon", "missing");
  h.rms_eps = *eps;
  refuse_variants(file, keys, h);
  read_heads(keys, h);
  read_rope(file, keys, h);
  h.n_vocab = count_vocab(file);
  return h;
}

}  // namespace

HParams HParams::read(const gguf::Reader& file) {
  try {
    return read_keys(file);
  } catch (const gguf::Error& error) {
    throw Error(ExitCode::kModelFile, error.what());  // names the file already
  }
}

}  // namespace minfer
