# One interface target carries the language level, warnings and sanitizers of every minfer target.
add_library(minfer_options INTERFACE)
target_compile_features(minfer_options INTERFACE cxx_std_20)
target_include_directories(minfer_options INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(minfer_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wshadow>
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${MINFER_WERROR}>>:-Werror>)
if(MINFER_SANITIZE)
  target_compile_options(minfer_options INTERFACE
    -fsanitize=${MINFER_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(minfer_options INTERFACE -fsanitize=${MINFER_SANITIZE})
  # g++ 12 takes instrumented library code (std::regex, std::variant) for uses of uninitialized values.
  target_compile_options(minfer_options INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
endif()
