#include "gguf/isa.h"

#include <cstdlib>
#include <string>
#include <string_view>

#include "gguf/error.h"

namespace minfer::gguf {
namespace {

// The features of x86-64-v3 and -v4 that the compiler may use at these levels (System V psABI, x86-64
// supplement, "Micro-Architecture Levels"). __builtin_cpu_supports also asks the operating system, through
// XGETBV, whether it saves the wide registers. No processor with AVX2 lacks LZCNT, MOVBE and the rest of v2
// but has all of these.
Isa best_level() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                  __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
                  __builtin_cpu_supports("f16c") && __builtin_cpu_supports("lzcnt");
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
  return v4 ? Isa::kAvx512 : v3 ? Isa::kAvx2 : Isa::kBase;
#else
  return Isa::kBase;
#endif
}

}  // namespace

Isa choose_isa(const char* wish) {
  const Isa best = best_level();
  if (wish == nullptr || *wish == '\0') return best;
  for (const Isa level : {Isa::kBase, Isa::kAvx2, Isa::kAvx512}) {
    if (std::string_view(wish) != isa_name(level)) continue;
    if (level <= best) return level;
    throw Error(std::string("MINFER_ISA=") + wish + ": this machine reaches only " + isa_name(best));
  }
  throw Error(std::string("MINFER_ISA=") + wish + ": no such level; there are base, avx2 and avx512");
}

Isa isa() {
  static const Isa level = choose_isa(std::getenv("MINFER_ISA"));
  return level;
}

const char* isa_name(Isa level) {
  switch (level) {
    case Isa::kBase:
      return "base";
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvx512:
      return "avx512";
  }
  return "unknown";
}

}  // namespace minfer::gguf
