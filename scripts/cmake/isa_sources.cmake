# minfer_isa_sources(target source...): compiles each source once per x86-64 feature level, so that one binary runs on
# every machine and is fast on the newer ones. A source wraps its code in `namespace MINFER_ISA_NAMESPACE` (base, avx2,
# avx512); gguf/isa.h says which of them this machine runs. Such a source uses no inline function of the standard
# library outside its namespace: the linker could keep the copy that needs the newer processor.
set(minfer_isa_flags_base "")
set(minfer_isa_flags_avx2 -march=x86-64-v3)
set(minfer_isa_flags_avx512 -march=x86-64-v4 -mprefer-vector-width=512)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(minfer_isa_levels base avx2 avx512)
else()
  set(minfer_isa_levels base)
endif()

function(minfer_isa_sources target)
  foreach(source IN LISTS ARGN)
    get_filename_component(stem ${source} NAME_WE)
    foreach(level IN LISTS minfer_isa_levels)
      set(object ${target}_${stem}_${level})
      add_library(${object} OBJECT ${source})
      target_link_libraries(${object} PRIVATE minfer_options)
      target_compile_options(${object} PRIVATE -O3 ${minfer_isa_flags_${level}})
      target_compile_definitions(${object} PRIVATE MINFER_ISA_NAMESPACE=${level})
      target_sources(${target} PRIVATE $<TARGET_OBJECTS:${object}>)
    endforeach()
  endforeach()
endfunction()
