#!/usr/bin/env bash
# Installs what is missing, builds (optimized, and with the address and undefined-behaviour sanitizers) and runs every
# test. Arguments go to ctest, e.g. scripts/test.sh -R tokenizer.
#
#   MINFER_ORACLE_DIR         right answers (default: ../shared/oracle beside the checkout, else tests/data)
#   MINFER_MODEL_DIR          folders with real models, colon-separated (default: models, ../shared/models)
#   MINFER_REQUIRE_ORACLE=1   a missing oracle or model is a failure, not a skip
set -euo pipefail
source "$(dirname "$0")/common.sh"

install_build_packages
install_missing python3
if ! fetch_model; then
  say "tests that need $model_name are skipped"
fi

build default
build asan

# Sanitizers slow the matrix products of a real model down to minutes; the same code runs there on the small models.
cd "$minfer_root"
failed=()
say "tests, asan build"
ctest --preset asan -j "$(nproc)" --no-tests=error -E '\(real model\)|:real: ' "$@" || failed+=(asan)
say "tests, default build"
ctest --preset default -j "$(nproc)" --no-tests=error "$@" || failed+=(default)
if [ ${#failed[@]} -gt 0 ]; then
  say "FAILED in: ${failed[*]}"
  exit 1
fi
