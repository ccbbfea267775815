# Every package comes from the distribution; a missing one ends the configure step with the line that installs it.
set(minfer_apt_packages
  libcli11-dev libspdlog-dev libfmt-dev nlohmann-json3-dev libpcre2-dev)
if(MINFER_TESTS)
  list(APPEND minfer_apt_packages catch2)
endif()
list(JOIN minfer_apt_packages " " minfer_apt_line)

macro(minfer_require name)
  find_package(${name} QUIET ${ARGN})
  if(NOT ${name}_FOUND)
    message(FATAL_ERROR "minfer needs ${name}, which was not found. On Debian or Ubuntu:\n"
                        "  sudo apt-get install g++ cmake ninja-build ${minfer_apt_line}\n")
  endif()
endmacro()

set(THREADS_PREFER_PTHREAD_FLAG ON)
minfer_require(Threads)
minfer_require(OpenMP COMPONENTS CXX)
minfer_require(CLI11)
minfer_require(fmt)
minfer_require(spdlog)
minfer_require(nlohmann_json)
minfer_require(PCRE2)
if(MINFER_TESTS)
  minfer_require(Catch2)
endif()

# spdlog and fmt from their headers alone: a binary then runs where neither library is installed.
# (spdlog::spdlog_header_only links the shared fmt.)
add_library(minfer_logging INTERFACE)
get_target_property(minfer_spdlog_definitions spdlog::spdlog_header_only INTERFACE_COMPILE_DEFINITIONS)
get_target_property(minfer_spdlog_includes spdlog::spdlog_header_only INTERFACE_INCLUDE_DIRECTORIES)
target_include_directories(minfer_logging SYSTEM INTERFACE ${minfer_spdlog_includes})
target_link_libraries(minfer_logging INTERFACE Threads::Threads)
if("SPDLOG_FMT_EXTERNAL" IN_LIST minfer_spdlog_definitions)
  target_compile_definitions(minfer_logging INTERFACE SPDLOG_FMT_EXTERNAL)
  target_link_libraries(minfer_logging INTERFACE fmt::fmt-header-only)
endif()
