#include "core/tensor_map.h"

#include <spdlog/fmt/fmt.h>

#include <string>
#include <string_view>
#include <unordered_set>

#include "core/error.h"
#include "core/warn_once.h"

namespace minfer {
namespace {

// Looks tensors up by role and remembers which ones were asked for.
class TensorFinder {
 public:
  explicit TensorFinder(const gguf::Reader& file) : file_(file) {}

  const gguf::Tensor* optional(const std::string& name, int64_t n_rows, int64_t n_cols) {
    const gguf::Tensor* tensor = file_.find(name);
    if (!tensor) return nullptr;
    used_.insert(tensor->name);
    check_shape(*tensor, n_rows, n_cols);
    check_type(*tensor);
    return tensor;
  }

  const gguf::Tensor* required(const std::string& name, int64_t n_rows, int64_t n_cols) {
    if (const gguf::Tensor* tensor = optional(name, n_rows, n_cols)) return tensor;
    throw Error(ExitCode::kModelFile,
                fmt::format("{}: tensor {} is missing", gguf::printable(file_.name()), name));
  }

  const gguf::Tensor* optional_vector(const std::string& name, int64_t n) { return optional(name, 1, n); }
  const gguf::Tensor* required_vector(const std::string& name, int64_t n) { return required(name, 1, n); }

  void warn_unused() const {
    constexpr size_t kMaxNamed = 8;
    size_t n_unused = 0;
    std::string names;
    for (const gguf::Tensor& tensor : file_.tensors()) {
      if (used_.contains(tensor.name)) continue;
      if (++n_unused <= kMaxNamed)
        names += fmt::format("{}{}", names.empty() ? "" : ", ", gguf::quoted(tensor.name));
    }
    if (n_unused == 0) return;
    warn_once(fmt::format("{}: {} tensors that no part of the model uses are ignored: {}{}",
                          gguf::printable(file_.name()), n_unused, names, n_unused > kMaxNamed ? ", ..." : ""));
  }

 private:
  // Shapes are printed in the file's order, the contiguous dimension first.
  void check_shape(const gguf::Tensor& t, int64_t n_rows, int64_t n_cols) const {
    const auto [d0, d1, d2, d3] = t.dims;
    if (d0 == static_cast<uint64_t>(n_cols) && d1 == static_cast<uint64_t>(n_rows) && d2 == 1 && d3 == 1)
      return;
    std::string has;
    for (uint32_t i = 0; i < t.n_dims; ++i) has += fmt::format("{}{}", i ? ", " : "", t.dims[i]);
    const std::string needs = n_rows == 1 ? fmt::format("{}", n_cols) : fmt::format("{}, {}", n_cols, n_rows);
    throw Error(ExitCode::kModelFile, fmt::format("{}: tensor {} has shape [{}], needs [{}]",
                                                  gguf::printable(file_.name()), t.name, has, needs));
  }

  void check_type(const gguf::Tensor& t) const {
    const gguf::TypeInfo* info = gguf::type_info(t.type);
    if (info && info->supported) return;
    const std::string type = info ? info->name : fmt::format("number {}", static_cast<uint32_t>(t.type));
    throw Error(ExitCode::kModelFile, fmt::format("{}: tensor {} has type {}, which minfer does not decode",
                                                  gguf::printable(file_.name()), t.name, type));
  }

  const gguf::Reader& file_;
  std::unordered_set<std::string_view> used_;
};

LayerTensors read_layer(TensorFinder& find, const HParams& h, int32_t l) {
  const auto name = [&](const char* role) { return fmt::format("blk.{}.{}", l, role); };
  LayerTensors t;
  t.attn_norm = find.required_vector(name("attn_norm.weight"), h.n_embd);
  t.attn_q = find.required(name("attn_q.weight"), h.q_dim(), h.n_embd);
  t.attn_k = find.required(name("attn_k.weight"), h.kv_dim(), h.n_embd);
  t.attn_v = find.required(name("attn_v.weight"), h.kv_dim(), h.n_embd);
  t.attn_q_bias = find.optional_vector(name("attn_q.bias"), h.q_dim());
  t.attn_k_bias = find.optional_vector(name("attn_k.bias"), h.kv_dim());
  t.attn_v_bias = find.optional_vector(name("attn_v.bias"), h.kv_dim());
  if (h.has_qk_norm) {
    t.attn_q_norm = find.required_vector(name("attn_q_norm.weight"), h.head_dim);
    t.attn_k_norm = find.required_vector(name("attn_k_norm.weight"), h.head_dim);
  }
  t.attn_output = find.required(name("attn_output.weight"), h.n_embd, h.q_dim());
  t.attn_output_bias = find.optional_vector(name("attn_output.bias"), h.n_embd);
  t.ffn_norm = find.required_vector(name("ffn_norm.weight"), h.n_embd);
  t.ffn_gate = find.required(name("ffn_gate.weight"), h.n_ff, h.n_embd);
  t.ffn_up = find.required(name("ffn_up.weight"), h.n_ff, h.n_embd);
  t.ffn_down = find.required(name("ffn_down.weight"), h.n_embd, h.n_ff);
  t.ffn_gate_bias = find.optional_vector(name("ffn_gate.bias"), h.n_ff);
  t.ffn_up_bias = find.optional_vector(name("ffn_up.bias"), h.n_ff);
  t.ffn_down_bias = find.optional_vector(name("ffn_down.bias"), h.n_embd);
  return t;
}

}  // namespace

ModelTensors ModelTensors::read(const gguf::Reader& file, const HParams& h) {
  TensorFinder find(file);
  ModelTensors t;
  t.token_embd = find.required("token_embd.weight", h.n_vocab, h.n_embd);
  t.output_norm = find.required_vector("output_norm.weight", h.n_embd);
  t.output = find.optional("output.weight", h.n_vocab, h.n_embd);
  if (!t.output) t.output = t.token_embd;
  t.output_bias = find.optional_vector("output.bias", h.n_vocab);
  t.rope_freqs = find.optional_vector("rope_freqs.weight", h.n_rot / 2);
  for (int32_t l = 0; l < h.n_layer; ++l) t.layers.push_back(read_layer(find, h, l));
  find.warn_unused();
  return t;
}

}  // namespace minfer
