#include "gguf/blocks.h"

#include <set>
#include <string>

#include "gguf/dequantize.h"
#include "tests/support/catch.h"

namespace minfer::gguf {
namespace {

constexpr uint32_t kNumbers = 64;  // more than the format has

TEST_CASE("blocks: the table has each type once, with a name and a size", "[gguf][blocks]") {
  std::set<std::string> names;
  for (uint32_t number = 0; number < kNumbers; ++number) {
    const TypeInfo* info = type_info(static_cast<TensorType>(number));
    if (!info) continue;
    CHECK(static_cast<uint32_t>(info->type) == number);
    CHECK(info->block_size > 0);
    CHECK(info->block_bytes > 0);
    INFO(info->name);
    CHECK(names.insert(info->name).second);
    CHECK(info->supported == (dequantizer(info->type) != nullptr));
  }
  CHECK(names.size() == 34);
}

TEST_CASE("blocks: numbers that were never used or were taken back are no types", "[gguf][blocks]") {
  for (const uint32_t number : {4u, 5u, 31u, 32u, 33u, 36u, 37u, 38u, 42u, 1000u, 0xffffffffu}) {
    INFO(number);
    CHECK(type_info(static_cast<TensorType>(number)) == nullptr);
    CHECK(dequantizer(static_cast<TensorType>(number)) == nullptr);
  }
}

// Bits a weight, as the format's documentation states them: another way to the sizes than the structs.
TEST_CASE("blocks: sizes match the bits per weight of the format", "[gguf][blocks]") {
  const struct {
    TensorType type;
    const char* name;
    double bits;
  } kExpected[] = {
      {TensorType::kF32, "f32", 32},
      {TensorType::kF16, "f16", 16},
      {TensorType::kBF16, "bf16", 16},
      {TensorType::kQ4_0, "q4_0", 4.5},
      {TensorType::kQ4_1, "q4_1", 5},
      {TensorType::kQ5_0, "q5_0", 5.5},
      {TensorType::kQ5_1, "q5_1", 6},
      {TensorType::kQ8_0, "q8_0", 8.5},
      {TensorType::kQ2_K, "q2_K", 2.625},
      {TensorType::kQ3_K, "q3_K", 3.4375},
      {TensorType::kQ4_K, "q4_K", 4.5},
      {TensorType::kQ5_K, "q5_K", 5.5},
      {TensorType::kQ6_K, "q6_K", 6.5625},
      {TensorType::kIQ4_NL, "iq4_nl", 4.5},
      {TensorType::kIQ4_XS, "iq4_xs", 4.25},
      {TensorType::kIQ1_S, "iq1_s", 1.5625},
      {TensorType::kIQ1_M, "iq1_m", 1.75},
      {TensorType::kIQ2_XXS, "iq2_xxs", 2.0625},
      {TensorType::kIQ2_XS, "iq2_xs", 2.3125},
      {TensorType::kIQ2_S, "iq2_s", 2.5625},
      {TensorType::kIQ3_XXS, "iq3_xxs", 3.0625},
      {TensorType::kIQ3_S, "iq3_s", 3.4375},
      {TensorType::kTQ1_0, "tq1_0", 1.6875},
      {TensorType::kTQ2_0, "tq2_0", 2.0625},
      {TensorType::kMXFP4, "mxfp4", 4.25},
      {TensorType::kNVFP4, "nvfp4", 4.5},
      {TensorType::kQ1_0, "q1_0", 1.125},
      {TensorType::kQ8_1, "q8_1", 9},
      {TensorType::kQ8_K, "q8_K", 9.125},
      {TensorType::kF64, "f64", 64},
      {TensorType::kI8, "i8", 8},
      {TensorType::kI16, "i16", 16},
      {TensorType::kI32, "i32", 32},
      {TensorType::kI64, "i64", 64},
  };
  for (const auto& expected : kExpected) {
    INFO(expected.name);
    const TypeInfo* info = type_info(expected.type);
    REQUIRE(info);
    CHECK(std::string(info->name) == expected.name);
    CHECK(8.0 * info->block_bytes / info->block_size == expected.bits);
  }
}

}  // namespace
}  // namespace minfer::gguf
