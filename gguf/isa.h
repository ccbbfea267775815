// Which build of the multi-versioned sources (scripts/cmake/isa_sources.cmake) this machine runs.
#pragma once

namespace minfer::gguf {

enum class Isa { kBase, kAvx2, kAvx512 };

// The best level that the processor and the operating system support; MINFER_ISA=base|avx2|avx512 lowers it.
// Decided once. Throws Error where MINFER_ISA names no level or one that this machine lacks.
Isa isa();
const char* isa_name(Isa level);

// What isa() does with MINFER_ISA=`wish`, null or empty where it is not set; decided anew at each call.
Isa choose_isa(const char* wish);

}  // namespace minfer::gguf
