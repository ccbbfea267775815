#include "core/verify.h"

#include <cmath>

#include "core/error.h"
#include "core/reference/reference_engine.h"
#include "tests/support/catch.h"
#include "tests/support/tiny_model.h"

using namespace minfer;
using namespace minfer::test;

namespace {

std::vector<std::byte> f32_model(std::function<void(TinyTensor&)> edit) {
  TinyModel model;
  model.type = gguf::TensorType::kF32;
  model.edit_tensor = std::move(edit);
  return tiny_model(model);
}

struct Model {
  explicit Model(std::function<void(TinyTensor&)> edit = {})
      : bytes(f32_model(std::move(edit))),
        file(gguf::Reader::from_bytes(bytes)),
        engine(make_reference_engine(file, {.n_threads = 1})) {}
  std::vector<std::byte> bytes;
  gguf::Reader file;
  std::unique_ptr<Engine> engine;
};

// The same model with a head that answers `factor` times as much.
Model with_head_times(float factor) {
  return Model([factor](TinyTensor& t) {
    if (t.name == "output.weight") {
      for (float& v : t.values) v *= factor;
    }
  });
}

const std::vector<TokenId> kPrompt{7, 1, 200, 45, 45, 9};

}  // namespace

TEST_CASE("verify: an engine agrees with itself", "[core][verify]") {
  Model a, b;
  const VerifyReport r = verify(*a.engine, *b.engine, kPrompt, {.n_generate = 5, .layers = true});
  CHECK(r.passed());
  CHECK(r.n_prompt == 6);
  CHECK(r.n_generated == 5);
  CHECK(r.n_argmax_equal == 11);
  CHECK(r.logits.mean == 0);
  CHECK(r.logits.worst == 0);
  CHECK_FALSE(r.first_difference);
  REQUIRE(r.layers.size() == 2);
  CHECK(r.layers[1].worst == 0);
}

TEST_CASE("verify: the error is relative to the row, and past the tolerance it fails", "[core][verify]") {
  Model reference, near = with_head_times(1.002f), far = with_head_times(1.02f);
  const VerifyReport passed = verify(*reference.engine, *near.engine, kPrompt, {.n_generate = 2});
  CHECK(passed.logits.mean == Approx(0.002).epsilon(1e-3));
  CHECK(passed.logits.worst == Approx(0.002).epsilon(1e-3));
  CHECK(passed.n_argmax_equal == 8);
  CHECK(passed.passed());
  const VerifyReport failed = verify(*reference.engine, *far.engine, kPrompt, {.n_generate = 2});
  CHECK(failed.logits.mean == Approx(0.02).epsilon(1e-3));
  CHECK_FALSE(failed.passed());
}

TEST_CASE("verify: the first difference has its row, both choices and the margin", "[core][verify]") {
  Model reference;
  const SeqId seq = reference.engine->kv_reserve(6);
  Batch batch;
  for (size_t i = 0; i < kPrompt.size(); ++i) {
    batch.add(seq, static_cast<int32_t>(i), kPrompt[i], Want::kArgmax);
  }
  const auto rows = reference.engine->forward(batch);
  const RowResult third = rows[2];
  reference.engine->kv_free(seq);
  const auto chosen = static_cast<size_t>(third.argmax);
  Model other([chosen](TinyTensor& t) {  // that token's row of the head answers the opposite
    if (t.name != "output.weight") return;
    for (size_t d = 0; d < 64; ++d) t.values[chosen * 64 + d] *= -1;
  });
  const VerifyReport r =
      verify(*reference.engine, *other.engine, std::span(kPrompt).first(3), {.n_generate = 0});
  REQUIRE(r.first_difference);
  CHECK(r.first_difference->pos <= 2);
  CHECK(r.first_difference->reference == third.argmax);
  CHECK(r.first_difference->candidate != third.argmax);
  if (r.first_difference->pos == 2) CHECK(r.first_difference->margin == third.margin);
  CHECK(r.n_argmax_equal < 3);
}

TEST_CASE("verify: layers show where an error begins", "[core][verify]") {
  Model reference, other([](TinyTensor&t) {
    if (t.name == "blk.1.ffn_down.weight") t.values[0] += 0.5f;
  });
  const VerifyReport r = verify(*reference.engine, *other.engine, kPrompt, {.n_generate = 1, .layers = true});
  REQUIRE(r.layers.size() == 2);
  CHECK(r.layers[0].worst == 0);
  CHECK(r.layers[1].mean > 0);
  CHECK(r.layers[1].worst >= r.layers[1].mean);
  // Nobody looks any longer: a probe that has gone must not be called.
  const SeqId seq = other.engine->kv_reserve(1);
  Batch batch;
  batch.add(seq, 0, 3, Want::kArgmax);
  CHECK(other.engine->forward(batch).size() == 1);
}

TEST_CASE("verify: a row that is not finite is named and fails", "[core][verify]") {
  Model reference, broken([](TinyTensor&t) {
    if (t.name == "output_norm.weight") t.values.assign(64, 3e38f);  // times a value past 1.13: Inf
  });
  const VerifyReport r = verify(*reference.engine, *broken.engine, kPrompt, {.n_generate = 1});
  REQUIRE(r.first_not_finite);
  CHECK(*r.first_not_finite == 0);
  CHECK_FALSE(r.passed());
  CHECK_THROWS_AS(verify(*broken.engine, *reference.engine, kPrompt, {.n_generate = 1}), Error);
}

TEST_CASE("verify: prompts longer than what is compared at a time", "[core][verify]") {
  TinyModel model;
  model.n_ctx = 1024;
  const auto bytes = tiny_model(model);
  const auto file = gguf::Reader::from_bytes(bytes);
  const auto a = make_reference_engine(file, {.n_threads = 1}),
             b = make_reference_engine(file, {.n_threads = 1});
  std::vector<TokenId> prompt(300);
  for (size_t i = 0; i < prompt.size(); ++i) prompt[i] = static_cast<TokenId>(i * 7 % 250);
  const VerifyReport r = verify(*a, *b, prompt, {.n_generate = 3});
  CHECK(r.n_rows() == 303);
  CHECK(r.n_argmax_equal == 303);
}

TEST_CASE("verify: the tolerance grows with the depth", "[core][verify]") {
  CHECK(mean_tolerance(1) == Approx(3.75e-3));
  CHECK(mean_tolerance(4) == Approx(3.75e-3));
  CHECK(mean_tolerance(28) == Approx(9.92e-3).epsilon(1e-3));
  CHECK(row_tolerance(28) == Approx(4 * mean_tolerance(28)));
}

TEST_CASE("verify: clear choices must agree, whatever the errors", "[core][verify]") {
  VerifyReport r;
  CHECK(r.passed());  // no row is clear
  r.n_clear = 100;
  r.n_clear_equal = 99;
  CHECK(r.passed());
  r.n_clear_equal = 98;
  CHECK_FALSE(r.passed());
}

TEST_CASE("verify: the error of a row of zeros", "[core][verify]") {
  const std::vector<float> zeros(4), ones(4, 1.0f);
  CHECK(relative_error(zeros, zeros) == 0);
  CHECK(std::isinf(relative_error(ones, zeros)));
  CHECK(relative_error(zeros, ones) == 1);
}
