#include "gguf/metadata.h"

#include <array>
#include <cmath>
#include <limits>

#include "gguf/error.h"
#include "gguf/reader.h"
#include "tests/support/catch.h"
#include "tests/support/gguf_files.h"

namespace minfer::gguf {
namespace {

using test::Bytes;

// A file that lives as long as what was read from it.
struct File {
  explicit File(Bytes from) : bytes(std::move(from)), reader(Reader::from_bytes(bytes, "f.gguf")) {}
  const Metadata& keys() const { return reader.metadata(); }
  Bytes bytes;
  Reader reader;
};

template <typename Call>
std::string error_of(Call call) {
  try {
    call();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

template <typename T>
void add(Writer& out, std::string_view key, ValueType type, const std::vector<T>& values) {
  out.add_scalars(key, type, values.size(), std::as_bytes(std::span(values)));
}

TEST_CASE("metadata: every scalar type arrives as written", "[gguf][metadata]") {
  const File file(test::every_type_file());
  const Metadata& keys = file.keys();
  CHECK(std::get<uint64_t>(keys.find("a.u8")->value) == 200);
  CHECK(std::get<int64_t>(keys.find("a.i8")->value) == -100);
  CHECK(std::get<uint64_t>(keys.find("a.u16")->value) == 60000);
  CHECK(std::get<int64_t>(keys.find("a.i16")->value) == -30000);
  CHECK(std::get<uint64_t>(keys.find("a.u32")->value) == 4000000000u);
  CHECK(std::get<int64_t>(keys.find("a.i32")->value) == -2000000000);
  CHECK(std::get<uint64_t>(keys.find("a.u64")->value) == ~uint64_t{0});
  CHECK(std::get<int64_t>(keys.find("a.i64")->value) == std::numeric_limits<int64_t>::min());
  CHECK(std::get<double>(keys.find("a.f32")->value) == 1.5);
  CHECK(std::get<double>(keys.find("a.f64")->value) == 1e300);
  CHECK(std::get<bool>(keys.find("a.bool")->value));
  CHECK(std::get<std::string_view>(keys.find("a.string")->value) == "h\xc3\xa9");
  CHECK(keys.find("a.u16")->type == ValueType::kU16);
  CHECK(keys.find("a.f32")->type == ValueType::kF32);
  CHECK(keys.find("absent") == nullptr);
  CHECK(keys.entries().front().key == "general.architecture");
  CHECK(keys.entries().back().key == "b.array");
}

TEST_CASE("metadata: every array type arrives as written", "[gguf][metadata]") {
  const File file(test::every_type_file());
  const Metadata& keys = file.keys();
  using I = std::vector<int32_t>;
  CHECK(keys.get_i32s("b.u8") == I{1, 255});
  CHECK(keys.get_i32s("b.i8") == I{-128, 127});
  CHECK(keys.get_i32s("b.u16") == I{1, 65535});
  CHECK(keys.get_i32s("b.i16") == I{-32768, 32767});
  CHECK(keys.get_i32s("b.u32") == I{1, 2147483647});
  CHECK(keys.get_i32s("b.i32") == I{-1, 0, 7});
  CHECK(keys.get_i32s("b.u64") == I{1, 2147483647});
  CHECK(keys.get_i32s("b.i64") == I{-1, 5});
  CHECK(keys.get_f32s("b.f32") == std::vector<float>{0.25f, -3});
  CHECK(keys.get_f32s("b.f64") == std::vector<float>{0.5f, -2});
  CHECK(keys.get_f32s("b.i8") == std::vector<float>{-128, 127});
  const auto& bools = std::get<ScalarArray>(keys.find("b.bool")->value);
  CHECK(bools.n == 3);
  CHECK(bools.bytes.size() == 3);
  CHECK(std::get<NestedArray>(keys.find("b.array")->value).n == 2);

  const auto strings = keys.get_strings("b.string");
  REQUIRE(strings);
  CHECK(strings->size() == 3);
  CHECK(std::vector<std::string>(strings->begin(), strings->end()) ==
        std::vector<std::string>{"one", "", "three"});
}

TEST_CASE("metadata: strings and arrays are views into the file", "[gguf][metadata]") {
  const File file(test::every_type_file());
  const auto inside = [&](const void* at, size_t n) {
    const auto* p = static_cast<const std::byte*>(at);
    return p >= file.bytes.data() && p + n <= file.bytes.data() + file.bytes.size();
  };
  for (const Entry& entry : file.keys().entries()) CHECK(inside(entry.key.data(), entry.key.size()));
  CHECK(inside(file.keys().get_string("a.string")->data(), 3));
  const StringArray strings = *file.keys().get_strings("b.string");
  for (const std::string_view text : strings) CHECK(inside(text.data(), text.size()));
  CHECK(inside(std::get<ScalarArray>(file.keys().find("b.u16")->value).bytes.data(), 4));
}

TEST_CASE("metadata: absent keys give nothing", "[gguf][metadata]") {
  const File file(test::every_type_file());
  const Metadata& keys = file.keys();
  CHECK_FALSE(keys.has("no"));
  CHECK_FALSE(keys.get_u64("no"));
  CHECK_FALSE(keys.get_u32("no"));
  CHECK_FALSE(keys.get_f64("no"));
  CHECK_FALSE(keys.get_bool("no"));
  CHECK_FALSE(keys.get_string("no"));
  CHECK_FALSE(keys.get_strings("no"));
  CHECK_FALSE(keys.get_i32s("no"));
  CHECK_FALSE(keys.get_f32s("no"));
}

TEST_CASE("metadata: integers of any width and sign where the value fits", "[gguf][metadata]") {
  const File file(test::file_with([](Writer& out) {
    out.add_i8("i8", 5);
    out.add_i64("i64", 1 << 20);
    out.add_u64("big", uint64_t{1} << 32);
    out.add_u64("max", 0xffffffff);
    out.add_i16("negative", -1);
  }));
  const Metadata& keys = file.keys();
  CHECK(keys.get_u32("i8") == 5u);
  CHECK(keys.get_u32("i64") == 1u << 20);
  CHECK(keys.get_u64("big") == uint64_t{1} << 32);
  CHECK(keys.get_u32("max") == 0xffffffffu);
  CHECK(keys.get_f64("i8") == 5.0);
  CHECK(keys.get_f64("negative") == -1.0);
  CHECK(error_of([&] { (void)keys.get_u32("big"); }) ==
        "f.gguf: key 'big': is 4294967296, wanted at most 4294967295");
  CHECK(error_of([&] { (void)keys.get_u64("negative"); }) ==
        "f.gguf: key 'negative': is -1, wanted 0 or more");
}

TEST_CASE("metadata: another type than wanted names file, key and both types", "[gguf][metadata]") {
  const File file(test::every_type_file());
  const Metadata& keys = file.keys();
  CHECK(error_of([&] { (void)keys.get_u64("a.string"); }) ==
        "f.gguf: key 'a.string': holds string, wanted an integer");
  CHECK(error_of([&] { (void)keys.get_u32("a.f32"); }) ==
        "f.gguf: key 'a.f32': holds f32, wanted an integer");
  CHECK(error_of([&] { (void)keys.get_u64("a.bool"); }) ==
        "f.gguf: key 'a.bool': holds bool, wanted an integer");
  CHECK(error_of([&] { (void)keys.get_f64("b.f32"); }) ==
        "f.gguf: key 'b.f32': holds array of 2 f32, wanted a number");
  CHECK(error_of([&] { (void)keys.get_bool("a.u8"); }) == "f.gguf: key 'a.u8': holds u8, wanted bool");
  CHECK(error_of([&] { (void)keys.get_string("b.string"); }) ==
        "f.gguf: key 'b.string': holds array of 3 string, wanted string");
  CHECK(error_of([&] { (void)keys.get_strings("b.u8"); }) ==
        "f.gguf: key 'b.u8': holds array of 2 u8, wanted array of string");
  CHECK(error_of([&] { (void)keys.get_i32s("b.f32"); }) ==
        "f.gguf: key 'b.f32': holds array of 2 f32, wanted array of integers");
  CHECK(error_of([&] { (void)keys.get_i32s("b.bool"); }) ==
        "f.gguf: key 'b.bool': holds array of 3 bool, wanted array of integers");
  CHECK(error_of([&] { (void)keys.get_f32s("a.f32"); }) ==
        "f.gguf: key 'a.f32': holds f32, wanted array of numbers");
  CHECK(error_of([&] { (void)keys.get_f32s("b.array"); }) ==
        "f.gguf: key 'b.array': holds array of 2 arrays, wanted array of numbers");
}

TEST_CASE("metadata: array elements that do not fit are named", "[gguf][metadata]") {
  const File file(test::file_with([](Writer& out) {
    add<uint32_t>(out, "u32", ValueType::kU32, {7, 0x80000000});
    add<int64_t>(out, "i64", ValueType::kI64, {-2147483649});
    add<double>(out, "f64", ValueType::kF64, {1, 1e39});
    add<double>(out, "inf", ValueType::kF64, {std::numeric_limits<double>::infinity()});
  }));
  const Metadata& keys = file.keys();
  CHECK(error_of([&] { (void)keys.get_i32s("u32"); }) ==
        "f.gguf: key 'u32': element 1 is 2147483648, which is no i32");
  CHECK(error_of([&] { (void)keys.get_i32s("i64"); }) ==
        "f.gguf: key 'i64': element 0 is -2147483649, which is no i32");
  CHECK(error_of([&] { (void)keys.get_f32s("f64"); }).find("element 1 is 99999") != std::string::npos);
  CHECK(std::isinf(keys.get_f32s("inf")->at(0)));
}

TEST_CASE("metadata: an empty array is empty whatever its element type", "[gguf][metadata]") {
  const File file(test::file_with([](Writer& out) {
    out.add_strings("strings", {});
    out.add_i32s("i32s", {});
  }));
  CHECK(file.keys().get_strings("strings")->size() == 0);
  CHECK(file.keys().get_strings("i32s")->size() == 0);
  CHECK(file.keys().get_i32s("strings")->empty());
  CHECK(file.keys().get_f32s("i32s")->empty());
  CHECK(file.keys().get_strings("i32s")->begin() == file.keys().get_strings("i32s")->end());
}

TEST_CASE("metadata: widening cannot outgrow the file", "[gguf][metadata]") {
  const File file(test::file_with([](Writer& out) {
    add<uint8_t>(out, "fits", ValueType::kU8, std::vector<uint8_t>(1 << 18, 3));
    add<uint8_t>(out, "long", ValueType::kU8, std::vector<uint8_t>((1 << 18) + 1, 3));
    add<int32_t>(out, "i32", ValueType::kI32, std::vector<int32_t>((1 << 18) + 1, 3));
  }));
  CHECK(file.keys().get_i32s("fits")->size() == 1 << 18);
  CHECK(file.keys().get_i32s("i32")->size() == (1 << 18) + 1);
  CHECK(error_of([&] { (void)file.keys().get_i32s("long"); }).find("262145") != std::string::npos);
}

TEST_CASE("metadata: a key added twice is refused", "[gguf][metadata]") {
  Metadata keys("f.gguf");
  keys.add({.key = "k", .type = ValueType::kU8, .value = uint64_t{1}});
  CHECK(error_of([&] { keys.add({.key = "k", .type = ValueType::kU8, .value = uint64_t{1}}); }) ==
        "f.gguf: key 'k': stands in the file twice");
  CHECK(keys.entries().size() == 1);
}

TEST_CASE("metadata: sizes and names of the value types", "[gguf][metadata]") {
  CHECK(scalar_size(ValueType::kBool) == 1);
  CHECK(scalar_size(ValueType::kI16) == 2);
  CHECK(scalar_size(ValueType::kF32) == 4);
  CHECK(scalar_size(ValueType::kF64) == 8);
  CHECK(scalar_size(ValueType::kString) == 0);
  CHECK(scalar_size(ValueType::kArray) == 0);
  CHECK(scalar_size(static_cast<ValueType>(13)) == 0);
  CHECK(value_type_name(ValueType::kU64) == "u64");
  CHECK(value_type_name(static_cast<ValueType>(99)) == "unknown");
}

}  // namespace
}  // namespace minfer::gguf
