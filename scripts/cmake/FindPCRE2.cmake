# PCRE2, 8-bit code units, the static library where there is one: a binary then runs where PCRE2 is not installed.
# Defines PCRE2_FOUND and the target PCRE2::PCRE2.
find_path(PCRE2_INCLUDE_DIR pcre2.h)
find_library(PCRE2_STATIC_LIBRARY libpcre2-8.a)
find_library(PCRE2_SHARED_LIBRARY pcre2-8)
mark_as_advanced(PCRE2_INCLUDE_DIR PCRE2_STATIC_LIBRARY PCRE2_SHARED_LIBRARY)
if(PCRE2_STATIC_LIBRARY)
  set(PCRE2_LIBRARY ${PCRE2_STATIC_LIBRARY})
else()
  set(PCRE2_LIBRARY ${PCRE2_SHARED_LIBRARY})
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(PCRE2 REQUIRED_VARS PCRE2_LIBRARY PCRE2_INCLUDE_DIR)

if(PCRE2_FOUND AND NOT TARGET PCRE2::PCRE2)
  add_library(PCRE2::PCRE2 UNKNOWN IMPORTED)
  set_target_properties(PCRE2::PCRE2 PROPERTIES
    IMPORTED_LOCATION ${PCRE2_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${PCRE2_INCLUDE_DIR}
    INTERFACE_COMPILE_DEFINITIONS PCRE2_CODE_UNIT_WIDTH=8)
endif()
