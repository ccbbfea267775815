#include "core/reference/reference_engine.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "gguf/dequantize.h"
#include "gguf/quantize.h"
#include "tests/support/catch.h"
#include "tests/support/tiny_model.h"

namespace minfer {
namespace {

using test::TinyModel;
using test::TinyTensor;

struct Loaded {
  std::vector<std::byte> bytes;
  gguf::Reader file;
  std::unique_ptr<Engine> engine;

  explicit Loaded(const TinyModel& model = {},
                  const ReferenceOptions& options = {.n_threads = 2, .n_vocab_used = 0})
      : bytes(test::tiny_model(model)),
        file(gguf::Reader::from_bytes(bytes, "m.gguf")),
        engine(make_reference_engine(file, options)) {}
  Engine* operator->() const { return engine.get(); }
};

using Logits = std::vector<float>;

// Appends `text` to a sequence and answers the logits of its last token.
Logits feed(Engine& engine, SeqId seq, std::string_view text) {
  Batch batch;
  for (const char c : text) {
    batch.add(seq, engine.kv_length(seq) + static_cast<int32_t>(batch.rows.size()),
              static_cast<unsigned char>(c));
  }
  batch.rows.back().want = Want::kLogits;
  const auto results = engine.forward(batch);
  REQUIRE(results.size() == 1);
  return {results[0].logits.begin(), results[0].logits.end()};
}

std::string refusal(const std::function<void()>& act, ExitCode code = ExitCode::kRuntime) {
  try {
    act();
  } catch (const Error& error) {
    CHECK(error.code() == code);
    return error.what();
  }
  return "";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("reference engine: says what it runs on", "[engine]") {
  const Loaded model({}, {.n_threads = 2, .n_vocab_used = 0});
  CHECK(contains(model->description(), "cpu, 2 threads, "));
  CHECK(contains(Loaded({}, {.n_threads = 1, .n_vocab_used = 0})->description(), "cpu, 1 thread, "));
  CHECK(model->hparams().n_embd == 64);
}

TEST_CASE("reference engine: a copied prefix continues as the original does", "[engine]") {
  const Loaded model;
  const SeqId a = model->kv_reserve(64), b = model->kv_reserve(40), c = model->kv_reserve(64);
  feed(*model.engine, a, "the quick brown fox jumps");
  feed(*model.engine, b, "something else that is overwritten");
  model->kv_copy(a, b, 19);
  CHECK(model->kv_length(b) == 19);
  CHECK(model->kv_length(a) == 25);
  const Logits whole = feed(*model.engine, c, "the quick brown fox sleeps");
  CHECK(feed(*model.engine, b, " sleeps") == whole);
  model->kv_truncate(a, 19);
  CHECK(model->kv_length(a) == 19);
  CHECK(feed(*model.engine, a, " sleeps") == whole);
  model->kv_copy(a, a, 3);
  CHECK(model->kv_length(a) == 3);
}

TEST_CASE("reference engine: freed sequences are gone", "[engine]") {
  const Loaded model;
  const SeqId a = model->kv_reserve(8);
  model->kv_free(a);
  CHECK_FALSE(refusal([&] { model->kv_length(a); }).empty());
  CHECK_FALSE(refusal([&] { model->kv_free(a); }).empty());
  CHECK_FALSE(refusal([&] { model->kv_truncate(a, 0); }).empty());
  const SeqId b = model->kv_reserve(8);
  CHECK(b != a);
  CHECK(model->kv_length(b) == 0);
  CHECK_FALSE(refusal([&] { model->kv_copy(a, b, 0); }).empty());
}

TEST_CASE("reference engine: KV operations out of range print both numbers", "[engine]") {
  const Loaded model;
  const SeqId a = model->kv_reserve(16), b = model->kv_reserve(4);
  feed(*model.engine, a, "0123456789");
  std::string message = refusal([&] { model->kv_truncate(a, 11); });
  CHECK(contains(message, "11"));
  CHECK(contains(message, "10"));
  message = refusal([&] { model->kv_copy(a, b, 5); });
  CHECK(contains(message, "5"));
  CHECK(contains(message, "4"));
  CHECK_FALSE(refusal([&] { model->kv_copy(a, b, 11); }).empty());
  CHECK_FALSE(refusal([&] { model->kv_truncate(a, -1); }).empty());
  CHECK_FALSE(refusal([&] { model->kv_reserve(0); }).empty());
  CHECK(model->kv_length(a) == 10);
  CHECK(model->kv_length(b) == 0);
}

TEST_CASE("reference engine: KV that memory cannot hold is refused with both numbers", "[engine]") {
  TinyModel big;
  big.n_layer = 8;
  big.n_head_kv = 4;
  const Loaded model(big);
  const int32_t n = std::numeric_limits<int32_t>::max();
  const std::string message = refusal([&] { model->kv_reserve(n); }, ExitCode::kDevice);
  CHECK(contains(message, std::to_string(model->kv_bytes(n))));
  CHECK(contains(message, "available"));
  CHECK(model->kv_bytes(16) == 16ull * 8 * 2 * 4 * 16 * sizeof(float));
  CHECK_NOTHROW(model->kv_reserve(16));
}

TEST_CASE("reference engine: KV that is promised and not yet touched is taken", "[engine]") {
  TinyModel big;
  big.n_layer = 8;
  big.n_head_kv = 4;
  const Loaded model(big);
  CHECK(model->kv_fits(16));
  CHECK_FALSE(model->kv_fits(std::numeric_limits<int32_t>::max()));
  // About 60 % of what is available: it fits, and then not once more.
  int32_t n = 1 << 10;
  while (n < (1 << 29) && model->kv_fits(n / 3 * 5)) n += n / 16;
  const SeqId seq = model->kv_reserve(n);
  CHECK_FALSE(model->kv_fits(n));
  CHECK_FALSE(refusal([&] { model->kv_reserve(n); }, ExitCode::kDevice).empty());
  model->kv_free(seq);
  CHECK(model->kv_fits(n));
}

TEST_CASE("reference engine: a batch that breaks its contract changes nothing", "[engine]") {
  const Loaded model;
  const SeqId a = model->kv_reserve(8), b = model->kv_reserve(8);
  feed(*model.engine, a, "abc");
  const auto refused = [&](const std::vector<Row>& rows) {
    const std::string message = refusal([&] { model->forward({rows}); });
    CHECK(model->kv_length(a) == 3);
    CHECK(model->kv_length(b) == 0);
    return message;
  };
  const Want none = Want::kNothing;
  CHECK(contains(refused({{1, 3, a, none}, {test::kTinyVocab, 4, a, none}}), "token 264 is not in 0..263"));
  CHECK(contains(refused({{-2, 3, a, none}}), "token -2"));
  CHECK(contains(refused({{1, 4, a, none}}), "position 4 of sequence"));
  CHECK(contains(refused({{1, 3, a, none}, {1, 3, a, none}}), "needs 4"));
  CHECK(contains(refused({{1, -1, a, none}}), "position -1"));
  CHECK(contains(refused({{1, 0, 99, none}}), "no sequence 99"));
  CHECK(contains(refused({{1, 3, a, none}, {1, 0, b, none}, {1, 4, a, none}}), "not next to this one"));
  std::vector<Row> long_rows;
  for (int i = 3; i < 9; ++i) long_rows.push_back({1, i, a, none});
  const std::string message = refused(long_rows);
  CHECK(contains(message, "position 8"));
  CHECK(contains(message, "room for 8 tokens"));
  CHECK(model->forward({}).empty());
}

TEST_CASE("reference engine: a row may be what the sequence chose last", "[engine]") {
  const Loaded model;
  const SeqId a = model->kv_reserve(32), b = model->kv_reserve(32);
  Batch batch;
  batch.add(a, 0, 'x', Want::kArgmax);
  const TokenId first = model->forward(batch)[0].argmax;
  batch.rows = {{kLastArgmax, 1, a, Want::kLogits}};
  const auto by_argmax = model->forward(batch)[0];
  const Logits logits(by_argmax.logits.begin(), by_argmax.logits.end());
  batch.rows = {{'x', 0, b, Want::kNothing}, {first, 1, b, Want::kLogits}};
  const auto by_id = model->forward(batch)[0];
  CHECK(logits == Logits(by_id.logits.begin(), by_id.logits.end()));

  // Of the same batch, after a truncation, in a new sequence: there is no such token.
  batch.rows = {{'x', 2, a, Want::kArgmax}, {kLastArgmax, 3, a, Want::kArgmax}};
  CHECK(contains(refusal([&] { model->forward(batch); }), "row 0 of the same batch"));
  batch.rows = {{kLastArgmax, 1, a, Want::kArgmax}};
  model->kv_truncate(a, 1);
  CHECK(contains(refusal([&] { model->forward(batch); }), "no last argmax"));
  batch.rows = {{kLastArgmax, 0, model->kv_reserve(1), Want::kArgmax}};
  CHECK(contains(refusal([&] { model->forward(batch); }), "no last argmax"));
}

TEST_CASE("reference engine: only rows that want something are answered, in order", "[engine]") {
  const Loaded model;
  const SeqId a = model->kv_reserve(700), b = model->kv_reserve(8);
  Batch batch;
  for (int i = 0; i < 600; ++i) {  // more than go through the layers together
    batch.add(a, i, i % 200, i % 7 == 0 ? Want::kLogits : i % 5 == 0 ? Want::kArgmax : Want::kNothing);
  }
  batch.add(b, 0, 5, Want::kArgmax);
  const auto results = model->forward(batch);
  size_t at = 0;
  for (size_t i = 0; i < batch.rows.size(); ++i) {
    if (batch.rows[i].want == Want::kNothing) continue;
    REQUIRE(at < results.size());
    const RowResult& r = results[at++];
    CHECK(r.row == static_cast<int32_t>(i));
    CHECK(r.logits.size() == (batch.rows[i].want == Want::kLogits ? size_t{test::kTinyVocab} : 0));
    CHECK(r.margin >= 0);
    CHECK(r.finite());
    if (!r.logits.empty()) {
      const auto best = std::max_element(r.logits.begin(), r.logits.end());
      CHECK(r.argmax == best - r.logits.begin());
      CHECK(r.max_logit == *best);
      Logits others(r.logits.begin(), r.logits.end());
      others.erase(others.begin() + r.argmax);
      CHECK(r.margin == *best - *std::max_element(others.begin(), others.end()));
    }
  }
  CHECK(at == results.size());
}

TEST_CASE("reference engine: sequences of any depth and wish in one batch are each as alone", "[engine]") {
  const Loaded model;
  const std::string text =
      "so many sequences, each of them as deep as it likes, and none of them looks at another one";
  const std::vector<size_t> depths = {1, 15, 16, 17, 40, 80, 3};
  std::vector<Logits> alone;
  Batch batch;
  for (size_t i = 0; i < depths.size(); ++i) {
    const std::string own = text.substr(i, depths[i] + 1 + i % 3);
    alone.push_back(feed(*model.engine, model->kv_reserve(100), own));
    const SeqId seq = model->kv_reserve(100);
    feed(*model.engine, seq, own.substr(0, depths[i]));
    for (size_t at = depths[i]; at < own.size(); ++at) {
      batch.add(seq, static_cast<int32_t>(at), static_cast<unsigned char>(own[at]));
    }
    batch.rows.back().want = i % 2 == 0 ? Want::kLogits : Want::kArgmax;
  }
  const auto results = model->forward(batch);
  REQUIRE(results.size() == depths.size());
  for (size_t i = 0; i < depths.size(); ++i) {
    CAPTURE(i);
    const Row& row = batch.rows[static_cast<size_t>(results[i].row)];
    CHECK(row.want == (i % 2 == 0 ? Want::kLogits : Want::kArgmax));
    if (row.want == Want::kLogits)
      CHECK(Logits(results[i].logits.begin(), results[i].logits.end()) == alone[i]);
    CHECK(results[i].max_logit == *std::max_element(alone[i].begin(), alone[i].end()));
    CHECK(alone[i][static_cast<size_t>(results[i].argmax)] == results[i].max_logit);
  }
}

TEST_CASE("reference engine: rows of the head beyond the vocabulary are never chosen", "[engine]") {
  TinyModel padded;
  padded.n_extra_rows = 8;
  padded.type = gguf::TensorType::kF32;
  padded.edit_tensor = [](TinyTensor& t) {
    if (t.name != "output.weight") return;
    for (size_t i = 0; i < t.values.size(); ++i) t.values[i] *= i / 64 >= test::kTinyVocab ? 100.0f : 1.0f;
  };
  size_t n_beyond = 0;
  for (const int32_t used : {0, test::kTinyVocab}) {
    const Loaded model(padded, {.n_threads = 1, .n_vocab_used = used});
    const SeqId seq = model->kv_reserve(64);
    Batch batch;
    for (int i = 0; i < 64; ++i) batch.add(seq, i, i, Want::kArgmax);
    for (const RowResult& r : model->forward(batch)) {
      if (used == 0) {
        n_beyond += r.argmax >= test::kTinyVocab;
      } else {
        CHECK(r.argmax < used);
      }
    }
  }
  CHECK(n_beyond > 32);  // or the model would not have put anything to the test
  CHECK(contains(
      refusal([&] { Loaded(padded, {.n_threads = 1, .n_vocab_used = 273}); }, ExitCode::kModelFile), "272"));
}

TEST_CASE("reference engine: a quantized model is the f32 model of its decoded weights", "[engine]") {
  using gguf::TensorType;
  TinyModel model;
  model.n_embd = 256;
  model.n_ff = 256;
  model.head_dim = 64;
  for (const TensorType type :
       {TensorType::kF16, TensorType::kBF16, TensorType::kQ8_0, TensorType::kQ6_K, TensorType::kQ5_K,
        TensorType::kQ5_0, TensorType::kQ5_1, TensorType::kQ4_K, TensorType::kQ4_0, TensorType::kQ4_1,
        TensorType::kIQ4_NL, TensorType::kIQ4_XS, TensorType::kQ3_K, TensorType::kQ2_K}) {
    CAPTURE(gguf::type_info(type)->name);
    model.type = type;
    model.edit_tensor = nullptr;
    const Loaded quantized(model);
    model.edit_tensor = [](TinyTensor& t) {
      if (t.type == TensorType::kF32) return;
      const auto blocks = gguf::quantize(t.type, t.values.data(), t.values.size());
      gguf::dequantizer(t.type)(blocks.data(), t.values.data(), t.values.size());
      t.type = TensorType::kF32;
    };
    const Loaded decoded(model);
    const Logits logits = feed(*quantized.engine, quantized->kv_reserve(32), "the same text");
    CHECK(logits == feed(*decoded.engine, decoded->kv_reserve(32), "the same text"));
  }
}

TEST_CASE("reference engine: a value that is not finite is found in its layer", "[engine]") {
  for (const float bad : {INFINITY, -INFINITY, NAN}) {
    for (const int layer : {0, 1, 2}) {  // 2: the head
      CAPTURE(bad, layer);
      TinyModel model;
      model.type = gguf::TensorType::kF32;
      model.edit_tensor = [=](TinyTensor& t) {
        const std::string name =
            layer == 2 ? "output.weight" : "blk." + std::to_string(layer) + ".ffn_down.weight";
        if (t.name == name) t.values[77] = bad;
      };
      const Loaded loaded(model);
      const SeqId seq = loaded->kv_reserve(4);
      Batch batch;
      batch.add(seq, 0, 'a');
      batch.add(seq, 1, 'b', Want::kArgmax);
      const RowResult result = loaded->forward(batch)[0];
      CHECK(result.bad_layer == layer);
      const std::string message = refusal([&] { check_finite(result, *loaded.engine, 41); });
      CHECK(contains(message, "step 41"));
      CHECK(contains(message, layer == 2 ? "the logits" : "layer " + std::to_string(layer)));
    }
  }
  const Loaded fine;
  Batch batch;
  batch.add(fine->kv_reserve(1), 0, 'a', Want::kArgmax);
  CHECK_NOTHROW(check_finite(fine->forward(batch)[0], *fine.engine, 0));
}

TEST_CASE("reference engine: frequency factors must be positive", "[engine]") {
  for (const float factor : {0.0f, -1.0f, NAN, INFINITY}) {
    TinyModel model;
    model.add_tensors = [=](gguf::Writer& out) {
      std::vector<float> factors(8, 1.0f);
      factors[3] = factor;
      const uint64_t dims[] = {8};
      out.add_tensor("rope_freqs.weight", gguf::TensorType::kF32, dims, std::as_bytes(std::span(factors)));
    };
    CHECK(contains(refusal([&] { Loaded{model}; }, ExitCode::kModelFile), "rope_freqs.weight"));
  }
}

TEST_CASE("reference engine: odd sizes of heads and layers", "[engine]") {
  TinyModel model;
  model.type = gguf::TensorType::kF32;
  model.n_embd = 37;
  model.n_ff = 53;
  model.n_head = 3;
  model.n_head_kv = 1;
  model.head_dim = 22;
  for (const char* arch : {"llama", "qwen2", "qwen3"}) {
    model.arch = arch;
    const Loaded one(model, {.n_threads = 1, .n_vocab_used = 0}),
        three(model, {.n_threads = 3, .n_vocab_used = 0});
    const std::string text = "a text that is longer than one block of keys, and then some more of it";
    const SeqId seq = one->kv_reserve(80);
    for (const char c : text.substr(0, text.size() - 1)) feed(*one.engine, seq, std::string(1, c));
    CHECK(feed(*one.engine, seq, text.substr(text.size() - 1)) ==
          feed(*three.engine, three->kv_reserve(80), text));
  }
}

}  // namespace minfer
