#include "gguf/isa.h"

#include <cstdlib>
#include <string>

#include "gguf/error.h"
#include "tests/support/catch.h"

namespace minfer::gguf {
namespace {

std::string error_of(const char* wish) {
  try {
    choose_isa(wish);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("isa: without a wish the best level, and any level up to it on request", "[gguf][isa]") {
  const Isa best = choose_isa(nullptr);
  CHECK(choose_isa("") == best);
  for (const Isa level : {Isa::kBase, Isa::kAvx2, Isa::kAvx512}) {
    const char* name = isa_name(level);
    INFO(name);
    if (level <= best) {
      CHECK(choose_isa(name) == level);
    } else {
      CHECK(error_of(name) ==
            std::string("MINFER_ISA=") + name + ": this machine reaches only " + isa_name(best));
    }
  }
}

TEST_CASE("isa: a wish that names no level is an error that lists them", "[gguf][isa]") {
  for (const char* wish : {"avx", "AVX2", "avx2 ", "avx5120", "0"}) {
    CHECK(error_of(wish) ==
          std::string("MINFER_ISA=") + wish + ": no such level; there are base, avx2 and avx512");
  }
}

TEST_CASE("isa: the process-wide level is what MINFER_ISA asks for", "[gguf][isa]") {
  CHECK(isa() == choose_isa(std::getenv("MINFER_ISA")));
  CHECK(isa() == isa());
}

}  // namespace
}  // namespace minfer::gguf
