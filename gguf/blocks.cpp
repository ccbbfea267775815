#include "gguf/blocks.h"

#include "gguf/block_layouts.h"

namespace minfer::gguf {
namespace {

using enum TensorType;

template <class Block>
constexpr TypeInfo supported(TensorType type, const char* name, uint32_t block_size) {
  return {type, name, block_size, sizeof(Block), true};
}

// Numbers that are missing here were types of older format versions (4, 5, 31-33, 36-38) and are no longer
// read.
constexpr TypeInfo kTypes[] = {
    {kF32, "f32", 1, 4, true},
    {kF16, "f16", 1, 2, true},
    {kBF16, "bf16", 1, 2, true},
    supported<BlockQ4_0>(kQ4_0, "q4_0", kBlock),
    supported<BlockQ4_1>(kQ4_1, "q4_1", kBlock),
    supported<BlockQ5_0>(kQ5_0, "q5_0", kBlock),
    supported<BlockQ5_1>(kQ5_1, "q5_1", kBlock),
    supported<BlockQ8_0>(kQ8_0, "q8_0", kBlock),
    supported<BlockQ2_K>(kQ2_K, "q2_K", kSuperBlock),
    supported<BlockQ3_K>(kQ3_K, "q3_K", kSuperBlock),
    supported<BlockQ4_K>(kQ4_K, "q4_K", kSuperBlock),
    supported<BlockQ5_K>(kQ5_K, "q5_K", kSuperBlock),
    supported<BlockQ6_K>(kQ6_K, "q6_K", kSuperBlock),
    supported<BlockIQ4_NL>(kIQ4_NL, "iq4_nl", kBlock),
    supported<BlockIQ4_XS>(kIQ4_XS, "iq4_xs", kSuperBlock),
    {kQ8_1, "q8_1", 32, 36, false},
    {kQ8_K, "q8_K", 256, 292, false},
    {kIQ2_XXS, "iq2_xxs", 256, 66, false},
    {kIQ2_XS, "iq2_xs", 256, 74, false},
    {kIQ3_XXS, "iq3_xxs", 256, 98, false},
    {kIQ1_S, "iq1_s", 256, 50, false},
    {kIQ3_S, "iq3_s", 256, 110, false},
    {kIQ2_S, "iq2_s", 256, 82, false},
    {kI8, "i8", 1, 1, false},
    {kI16, "i16", 1, 2, false},
    {kI32, "i32", 1, 4, false},
    {kI64, "i64", 1, 8, false},
    {kF64, "f64", 1, 8, false},
    {kIQ1_M, "iq1_m", 256, 56, false},
    {kTQ1_0, "tq1_0", 256, 54, false},
    {kTQ2_0, "tq2_0", 256, 66, false},
    {kMXFP4, "mxfp4", 32, 17, false},
    {kNVFP4, "nvfp4", 64, 36, false},
    {kQ1_0, "q1_0", 128, 18, false},
};

}  // namespace

const TypeInfo* type_info(TensorType type) {
  for (const TypeInfo& info : kTypes) {
    if (info.type == type) return &info;
  }
  return nullptr;
}

}  // namespace minfer::gguf
