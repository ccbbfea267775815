// Catch2 2 and 3 under one include, and a skip that both have: the case prints "SKIPPED: why" and returns,
// which ctest then lists as skipped, by name.
#pragma once

#if __has_include(<catch2/catch_test_macros.hpp>)
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators_all.hpp>
using Catch::Approx;  // as Catch2 2 has it
#else
#include <catch2/catch.hpp>
#endif

#include <cstdio>
#include <string>

#define MINFER_SKIP(reason)                                    \
  do {                                                         \
    std::printf("SKIPPED: %s\n", std::string(reason).c_str()); \
    return;                                                    \
  } while (false)
