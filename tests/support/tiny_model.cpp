#include "tests/support/tiny_model.h"

#include <cmath>
#include <random>
#include <span>

#include "gguf/quantize.h"

namespace minfer::test {
namespace {

using gguf::TensorType;

// GPT-2's spelling of a byte: printable ones stand for themselves, the others for code points from 256 on.
std::string spell(int byte) {
  const auto printable = [](int b) { return (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174; };
  int code = byte;
  if (!printable(byte)) {
    code = 256;
    for (int b = 0; b < byte; ++b) code += !printable(b);
  }
  if (code < 0x80) return std::string(1, static_cast<char>(code));
  return {static_cast<char>(0xc0 | (code >> 6)), static_cast<char>(0x80 | (code & 0x3f))};
}

class Builder {
 public:
  explicit Builder(const TinyModel& model) : m_(model), random_(model.seed) {}

  std::vector<std::byte> build() {
    add_hparams();
    add_tokenizer();
    if (m_.add_keys) m_.add_keys(out_);
    const uint64_t n_vocab = kTinyVocab + m_.n_extra_rows;
    matrix("token_embd.weight", m_.n_embd, n_vocab);
    for (uint32_t l = 0; l < m_.n_layer; ++l) add_layer("blk." + std::to_string(l) + ".");
    norm("output_norm.weight", m_.n_embd);
    if (!m_.tied) matrix("output.weight", m_.n_embd, n_vocab);
    if (m_.add_tensors) m_.add_tensors(out_);
    return out_.finish();
  }

 private:
  bool wanted(const std::string& key) const { return !m_.without_keys.contains(key); }
  void u32(const std::string& key, uint32_t value) {
    if (wanted(key)) out_.add_u32(key, value);
  }
  void f32(const std::string& key, float value) {
    if (wanted(key)) out_.add_f32(key, value);
  }
  void string(const std::string& key, const std::string& value) {
    if (wanted(key)) out_.add_string(key, value);
  }

  void add_hparams() {
    const std::string a = m_.arch + ".";
    string("general.architecture", m_.arch);
    string("general.name", "tiny " + m_.arch);
    u32(a + "context_length", m_.n_ctx);
    u32(a + "embedding_length", m_.n_embd);
    u32(a + "block_count", m_.n_layer);
    u32(a + "feed_forward_length", m_.n_ff);
    u32(a + "attention.head_count", m_.n_head);
    u32(a + "attention.head_count_kv", m_.n_head_kv);
    u32(a + "attention.key_length", m_.head_dim);
    u32(a + "attention.value_length", m_.head_dim);
    f32(a + "attention.layer_norm_rms_epsilon", 1e-5f);
  }

  void add_tokenizer() {
    std::vector<std::string> tokens;
    for (int byte = 0; byte < 256; ++byte) tokens.push_back(spell(byte));
    const std::string space = spell(' ');
    tokens.insert(tokens.end(), {"th", "he", "the", space + "t", space + "the"});
    const std::vector<std::string> merges{"t h", "h e", "th e", space + " t", space + "t he"};
    std::vector<int32_t> types(tokens.size(), 1);
    tokens.insert(tokens.end(), {"<|endoftext|>", "<|im_start|>", "<|im_end|>"});
    types.insert(types.end(), {3, 3, 3});
    string("tokenizer.ggml.model", "gpt2");
    string("tokenizer.ggml.pre", "gpt-2");
    if (wanted("tokenizer.ggml.tokens")) out_.add_strings("tokenizer.ggml.tokens", tokens);
    if (wanted("tokenizer.ggml.token_type")) out_.add_i32s("tokenizer.ggml.token_type", types);
    if (wanted("tokenizer.ggml.merges")) out_.add_strings("tokenizer.ggml.merges", merges);
    u32("tokenizer.ggml.bos_token_id", kTinyEndOfText);
    u32("tokenizer.ggml.eos_token_id", kTinyEndOfText);
    if (wanted("tokenizer.ggml.add_bos_token")) out_.add_bool("tokenizer.ggml.add_bos_token", false);
    if (!m_.chat_template.empty()) string("tokenizer.chat_template", m_.chat_template);
  }

  void add_layer(const std::string& blk) {
    const uint32_t q_dim = m_.n_head * m_.head_dim, kv_dim = m_.n_head_kv * m_.head_dim;
    norm(blk + "attn_norm.weight", m_.n_embd);
    matrix(blk + "attn_q.weight", m_.n_embd, q_dim);
    matrix(blk + "attn_k.weight", m_.n_embd, kv_dim);
    matrix(blk + "attn_v.weight", m_.n_embd, kv_dim);
    if (m_.arch == "qwen2") {
      vector(blk + "attn_q.bias", q_dim, 0.0f, 0.5f);
      vector(blk + "attn_k.bias", kv_dim, 0.0f, 0.5f);
      vector(blk + "attn_v.bias", kv_dim, 0.0f, 0.5f);
    }
    if (m_.arch == "qwen3") {
      norm(blk + "attn_q_norm.weight", m_.head_dim);
      norm(blk + "attn_k_norm.weight", m_.head_dim);
    }
    matrix(blk + "attn_output.weight", q_dim, m_.n_embd);
    norm(blk + "ffn_norm.weight", m_.n_embd);
    matrix(blk + "ffn_gate.weight", m_.n_embd, m_.n_ff);
    matrix(blk + "ffn_up.weight", m_.n_embd, m_.n_ff);
    matrix(blk + "ffn_down.weight", m_.n_ff, m_.n_embd);
  }

  // Uniform in -1..1, the same on every machine.
  float uniform() { return static_cast<float>(random_() >> 40) * 0x1p-23f - 1.0f; }

  void norm(const std::string& name, uint64_t n) { vector(name, n, 1.0f, 0.2f); }

  void vector(const std::string& name, uint64_t n, float mean, float spread) {
    TinyTensor t{name, TensorType::kF32, {n}, std::vector<float>(n)};
    for (float& v : t.values) v = mean + spread * uniform();
    write(std::move(t));
  }

  // Variance 1 / n_cols: the outputs are about as large as the inputs.
  void matrix(const std::string& name, uint64_t n_cols, uint64_t n_rows) {
    TinyTensor t{name, m_.type, {n_cols, n_rows}, std::vector<float>(n_cols * n_rows)};
    const float scale = std::sqrt(3.0f / static_cast<float>(n_cols));
    for (float& v : t.values) v = scale * uniform();
    write(std::move(t));
  }

  void write(TinyTensor t) {
    if (m_.edit_tensor) m_.edit_tensor(t);
    if (t.skip) return;
    if (t.type == TensorType::kF32) {  // as it is, finite or not
      out_.add_tensor(t.name, t.type, t.dims, std::as_bytes(std::span(t.values)));
    } else {
      out_.add_tensor(t.name, t.type, t.dims, gguf::quantize(t.type, t.values.data(), t.values.size()));
    }
  }

  const TinyModel& m_;
  std::mt19937_64 random_;
  gguf::Writer out_;
};

}  // namespace

std::vector<std::byte> tiny_model(const TinyModel& model) {
  return Builder(model).build();
}

}  // namespace minfer::test
