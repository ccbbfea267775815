#include "gguf/dequantize.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gguf/block_layouts.h"
#include "tests/support/catch.h"
#include "tests/support/oracle.h"

namespace minfer::gguf {
namespace {

// Levels this machine has, whatever MINFER_ISA says.
std::vector<Isa> levels() {
  std::vector<Isa> found;
  for (const Isa level : {Isa::kBase, Isa::kAvx2, Isa::kAvx512}) {
    if (level <= choose_isa(nullptr)) found.push_back(level);
  }
  return found;
}

std::vector<TensorType> supported_types() {
  std::vector<TensorType> types;
  for (uint32_t number = 0; number < 64; ++number) {
    const TypeInfo* info = type_info(static_cast<TensorType>(number));
    if (info && info->supported) types.push_back(info->type);
  }
  return types;
}

const TypeInfo* find_type(const std::string& lower_case_name) {
  for (uint32_t number = 0; number < 64; ++number) {
    const TypeInfo* info = type_info(static_cast<TensorType>(number));
    if (!info) continue;
    std::string name = info->name;
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    if (name == lower_case_name) return info;
  }
  return nullptr;
}

// Exact-size heap buffers, `offset` bytes after an aligned address: a sanitizer sees a byte too many at both
// ends.
std::vector<float> decode(DequantizeFn decoder, const std::string& blocks, size_t n, size_t offset) {
  const std::unique_ptr<char[]> in(new char[blocks.size() + offset]);
  const std::unique_ptr<float[]> out(new float[n]);
  std::memcpy(in.get() + offset, blocks.data(), blocks.size());
  decoder(in.get() + offset, out.get(), n);
  return {out.get(), out.get() + n};
}

bool same_bits(const std::vector<float>& a, const float* b) {
  return a.empty() || std::memcmp(a.data(), b, a.size() * sizeof(float)) == 0;
}

// As f16_to_f32(), from the definition: sign * mantissa * 2^exponent.
double f16_value(uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int mantissa = bits & 1023;
  double magnitude = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  if (exponent == 31) {
    magnitude =
        mantissa == 0 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  }
  return bits & 0x8000 ? -magnitude : magnitude;
}

void check_supported(const TypeInfo& info, const std::string& blocks, const std::string& truth) {
  const size_t n = truth.size() / sizeof(float);
  std::vector<float> expected(n);
  std::memcpy(expected.data(), truth.data(), truth.size());
  REQUIRE(blocks.size() == n / info.block_size * info.block_bytes);
  for (const Isa level : levels()) {
    INFO(isa_name(level));
    const DequantizeFn decoder = dequantizer(info.type, level);
    REQUIRE(decoder);
    for (size_t offset = 0; offset < 4; ++offset) {
      const std::vector<float> got = decode(decoder, blocks, n, offset);
      const auto wrong = std::mismatch(got.begin(), got.end(), expected.begin(), [](float a, float b) {
        return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
      });
      INFO("offset " << offset << ", first difference at " << wrong.first - got.begin());
      CHECK(same_bits(got, expected.data()));
    }
    for (size_t block = 0; block < n / info.block_size; ++block) {
      const std::string one = blocks.substr(block * info.block_bytes, info.block_bytes);
      if (!same_bits(decode(decoder, one, info.block_size, 1), expected.data() + block * info.block_size)) {
        FAIL("block " << block << " alone differs");
      }
    }
  }
}

TEST_CASE("dequantize: every type of the oracle bit for bit at every level, or refused",
          "[gguf][dequantize][oracle]") {
  const std::string suffix = ".blocks.bin";
  const auto files = test::oracle_files("dequant", suffix);
  if (files.empty()) MINFER_SKIP("no dequantization oracle");
  size_t n_supported = 0;
  for (const auto& file : files) {
    const std::string file_name = file.filename().string();
    const std::string name = file_name.substr(0, file_name.size() - suffix.size());
    INFO(name);
    const TypeInfo* info = find_type(name);
    if (!info) {
      FAIL_CHECK("no tensor type has the name " << name);
      continue;
    }
    const std::string blocks = test::read_file(file);
    const std::string truth = test::read_file(file.parent_path() / (name + ".f32.bin"));
    if (info->supported) {
      ++n_supported;
      check_supported(*info, blocks, truth);
      continue;
    }
    CHECK(blocks.size() == truth.size() / sizeof(float) / info->block_size * info->block_bytes);
    for (const Isa level : levels()) CHECK(dequantizer(info->type, level) == nullptr);
    CHECK(dequantizer(info->type) == nullptr);
  }
  CHECK(n_supported > 0);
}

// Random bytes reach every bit pattern of scales and values, infinite and NaN scales too; there NaNs need not
// have the same bits, since x86 takes the payload from whichever operand the compiler put first.
TEST_CASE("dequantize: all levels agree on random blocks", "[gguf][dequantize]") {
  std::mt19937 random(1);
  for (const TensorType type : supported_types()) {
    const TypeInfo& info = *type_info(type);
    INFO(info.name);
    const size_t n_blocks = info.block_size == 1 ? 4099 : 999;
    std::string blocks(n_blocks * info.block_bytes, '\0');
    for (char& byte : blocks) byte = static_cast<char>(random());
    const size_t n = n_blocks * info.block_size;
    const std::vector<float> expected = decode(dequantizer(type, Isa::kBase), blocks, n, 0);
    for (const Isa level : levels()) {
      INFO(isa_name(level));
      const std::vector<float> got = decode(dequantizer(type, level), blocks, n, 1);
      size_t n_wrong = 0;
      for (size_t i = 0; i < n; ++i) {
        const bool same = std::bit_cast<uint32_t>(got[i]) == std::bit_cast<uint32_t>(expected[i]);
        n_wrong += !same && !(std::isnan(got[i]) && std::isnan(expected[i]));
      }
      CHECK(n_wrong == 0);
    }
  }
}

TEST_CASE("dequantize: any number of blocks, none included, and nothing is written past them",
          "[gguf][dequantize]") {
  std::mt19937 random(2);
  for (const TensorType type : supported_types()) {
    const TypeInfo& info = *type_info(type);
    INFO(info.name);
    const size_t most = info.block_size == 1 ? 70 : 4;
    std::string blocks(most * info.block_bytes, '\0');
    for (char& byte : blocks)
      byte = static_cast<char>(random() & 0x3f);  // no infinities: their bits compare plainly
    for (const Isa level : levels()) {
      const DequantizeFn decoder = dequantizer(type, level);
      const std::vector<float> all = decode(decoder, blocks, most * info.block_size, 0);
      for (size_t n_blocks = 0; n_blocks <= most; ++n_blocks) {
        const size_t n = n_blocks * info.block_size;
        const std::vector<float> got = decode(decoder, blocks.substr(0, n_blocks * info.block_bytes), n, 3);
        CHECK(same_bits(got, all.data()));
      }
      std::vector<float> out(info.block_size + 1, 42.0f);
      decoder(blocks.data(), out.data(), info.block_size);
      CHECK(out.back() == 42.0f);
    }
  }
}

TEST_CASE("dequantize: the level asked for by default is that of the process", "[gguf][dequantize]") {
  for (const TensorType type : supported_types()) CHECK(dequantizer(type) == dequantizer(type, isa()));
}

TEST_CASE("dequantize: all 65536 f16 numbers, alone, in a row and as a scale", "[gguf][dequantize]") {
  std::string halves(2 * 65536, '\0');
  for (size_t bits = 0; bits < 65536; ++bits) {
    halves[2 * bits] = static_cast<char>(bits & 0xff);
    halves[2 * bits + 1] = static_cast<char>(bits >> 8);
  }
  std::vector<float> expected(65536);
  size_t n_wrong = 0;
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const double value = f16_value(static_cast<uint16_t>(bits));
    expected[bits] = f16_to_f32(static_cast<uint16_t>(bits));
    const bool same =
        std::isnan(value) ? std::isnan(expected[bits]) : value == static_cast<double>(expected[bits]);
    n_wrong += !same || std::signbit(expected[bits]) != ((bits & 0x8000) != 0);
  }
  CHECK(n_wrong == 0);
  for (const Isa level : levels()) {
    INFO(isa_name(level));
    CHECK(same_bits(decode(dequantizer(TensorType::kF16, level), halves, 65536, 1), expected.data()));
    n_wrong = 0;
    for (uint32_t bits = 0; bits < 65536; ++bits) {
      BlockQ8_0 block{{{static_cast<uint8_t>(bits & 0xff), static_cast<uint8_t>(bits >> 8)}}, {1, -1}};
      float out[kBlock];
      dequantizer(TensorType::kQ8_0, level)(&block, out, kBlock);
      const float d = expected[bits];
      const bool same = std::isnan(d) ? std::isnan(out[0]) && std::isnan(out[1])
                                      : std::bit_cast<uint32_t>(out[0]) == std::bit_cast<uint32_t>(d) &&
                                            std::bit_cast<uint32_t>(out[1]) == std::bit_cast<uint32_t>(-d);
      n_wrong += !same;
    }
    CHECK(n_wrong == 0);
  }
}

TEST_CASE("dequantize: f32 to f16 gives every f16 back", "[gguf][dequantize]") {
  size_t n_wrong = 0;
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const bool is_nan = (bits & 0x7fff) > 0x7c00;
    const uint32_t expected = is_nan ? bits | 0x200 : bits;  // quiet
    n_wrong += f32_to_f16(f16_to_f32(static_cast<uint16_t>(bits))) != expected;
  }
  CHECK(n_wrong == 0);
}

// Between each two neighbours: halfway goes to the even one, the floats next to halfway to the nearer one.
TEST_CASE("dequantize: f32 to f16 rounds to nearest, ties to even", "[gguf][dequantize]") {
  size_t n_wrong = 0;
  for (uint32_t low = 0; low < 0x7c00; ++low) {
    const uint32_t high = low + 1;
    // 2^16 stands in for infinity: it would be the next number.
    const double above = high == 0x7c00 ? 65536.0 : f16_value(static_cast<uint16_t>(high));
    const auto halfway = static_cast<float>((f16_value(static_cast<uint16_t>(low)) + above) / 2);  // exact
    const uint32_t even = low % 2 == 0 ? low : high;
    for (const uint32_t sign : {0u, 0x8000u}) {
      const float side = sign ? -1.0f : 1.0f;
      n_wrong += f32_to_f16(side * halfway) != (sign | even);
      n_wrong += f32_to_f16(side * std::nextafter(halfway, 0.0f)) != (sign | low);
      n_wrong += f32_to_f16(side * std::nextafter(halfway, INFINITY)) != (sign | high);
    }
  }
  CHECK(n_wrong == 0);
  CHECK(f32_to_f16(std::numeric_limits<float>::max()) == 0x7c00);
  CHECK(f32_to_f16(-std::numeric_limits<float>::infinity()) == 0xfc00);
  CHECK(f32_to_f16(std::numeric_limits<float>::denorm_min()) == 0);
  CHECK(f32_to_f16(-std::numeric_limits<float>::min()) == 0x8000);
  CHECK((f32_to_f16(std::numeric_limits<float>::quiet_NaN()) & 0x7e00) == 0x7e00);
}

}  // namespace
}  // namespace minfer::gguf
