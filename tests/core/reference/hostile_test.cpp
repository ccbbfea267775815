// Model files from strangers, all the way through: a damaged file is refused, or loads and survives a forward
// pass.
#include <algorithm>
#include <cstdio>

#include "core/error.h"
#include "core/reference/reference_engine.h"
#include "core/tokenizer/tokenizer.h"
#include "tests/support/alloc_meter.h"
#include "tests/support/catch.h"
#include "tests/support/log_capture.h"
#include "tests/support/mutate.h"
#include "tests/support/tiny_model.h"

namespace minfer {
namespace {

using Bytes = std::vector<std::byte>;

// What loading may take at once beyond the file's own size.
constexpr size_t kAllocConstant = size_t{4} << 20;

struct Tally {
  size_t n_read = 0;       // by gguf::Reader
  size_t n_tokenized = 0;  // with a tokenizer that encoded and decoded
  size_t n_run = 0;        // through a forward pass
};

void tokenize(const gguf::Reader& file, Tally& tally) {
  try {
    const auto tokenizer = Tokenizer::from_metadata(file.metadata());
    const std::string text = "the <|im_start|>path\n\xff\x80 1234 th\xc3\xa9";
    const auto ids = tokenizer->encode(text, {.add_special = true, .parse_special = true});
    tokenizer->decode(ids, true);
    for (const TokenId id : {-1, 0, 255, 263, 264, 1 << 30}) tokenizer->token_bytes(id, true);
    ++tally.n_tokenized;
  } catch (const Error&) {
  } catch (const gguf::Error&) {
  }
}

void run_engine(const gguf::Reader& file, Tally& tally) {
  try {
    const auto engine = make_reference_engine(file, {.n_threads = 1, .n_vocab_used = 0});
    REQUIRE(engine->kv_bytes(8) <= file.file_bytes() + (size_t{64} << 20));
    const SeqId seq = engine->kv_reserve(8);
    Batch batch;
    for (int i = 0; i < 5; ++i) {
      batch.add(seq, i, (i * 71) % engine->hparams().n_vocab, i == 4 ? Want::kLogits : Want::kNothing);
    }
    engine->forward(batch);
    batch.rows = {{kLastArgmax, 5, seq, Want::kArgmax}};
    const RowResult result = engine->forward(batch)[0];
    REQUIRE(result.argmax >= 0);
    REQUIRE(result.argmax < engine->hparams().n_vocab);
    ++tally.n_run;
  } catch (const Error&) {
  } catch (const gguf::Error&) {
  }
}

// Anything but an Error of ours, bad_alloc too, ends the test case.
void try_file(const Bytes& bytes, Tally& tally) {
  const test::LogCapture log;
  test::AllocMeter meter(bytes.size() + kAllocConstant);
  try {
    const auto file = gguf::Reader::from_bytes(bytes, "f.gguf");
    ++tally.n_read;
    tokenize(file, tally);
    run_engine(file, tally);
  } catch (const gguf::Error&) {
  }
}

Bytes small_model(const std::string& arch, gguf::TensorType type) {
  test::TinyModel model;
  model.arch = arch;
  model.type = type;
  model.n_embd = 32;
  model.n_ff = 32;
  model.n_head = 2;
  model.n_head_kv = 1;
  model.tied = true;
  return test::tiny_model(model);
}

size_t data_start(const Bytes& bytes) {
  const auto file = gguf::Reader::from_bytes(bytes);
  return static_cast<size_t>(file.tensors().front().data.data() - bytes.data());
}

}  // namespace

TEST_CASE("hostile: 20,000 mutations of a small model", "[hostile]") {
  const std::vector<Bytes> models{small_model("llama", gguf::TensorType::kQ4_0),
                                  small_model("qwen2", gguf::TensorType::kF16),
                                  small_model("qwen3", gguf::TensorType::kQ8_0)};
  Tally intact;
  for (const Bytes& model : models) try_file(model, intact);
  CHECK(intact.n_tokenized == models.size());
  CHECK(intact.n_run == models.size());

  test::Mutator mutator(4);
  Tally tally;
  for (int i = 0; i < 20000; ++i) {
    INFO("mutation " << i);
    const Bytes& model = models[static_cast<size_t>(i) % models.size()];
    try_file(mutator.mutate(model, data_start(model)), tally);
  }
  std::printf("mutations of models: %zu read, %zu tokenized, %zu run\n", tally.n_read, tally.n_tokenized,
              tally.n_run);
  CHECK(tally.n_read < 20000);
  CHECK(tally.n_run > 1000);
}

TEST_CASE("hostile: every key of a model overwritten with extremes", "[hostile]") {
  size_t n_refused = 0, n_files = 0;
  for (const char* key : {"context_length", "embedding_length", "block_count", "feed_forward_length",
                          "attention.head_count", "attention.head_count_kv", "attention.key_length",
                          "attention.value_length", "rope.dimension_count"}) {
    for (const uint64_t value :
         {0ull, 1ull, 3ull, 33ull, 1ull << 16, 1ull << 31, (1ull << 32) - 1, 1ull << 63, ~0ull}) {
      test::TinyModel model;
      const std::string name = "llama." + std::string(key);
      model.without_keys = {name};
      model.add_keys = [&](gguf::Writer& out) { out.add_u64(name, value); };
      const Bytes bytes = test::tiny_model(model);
      Tally tally;
      INFO(name << " = " << value);
      try_file(bytes, tally);
      REQUIRE(tally.n_read == 1);
      n_refused += tally.n_run == 0;
      ++n_files;
    }
  }
  CHECK(n_refused > n_files * 3 / 4);
}

}  // namespace minfer
