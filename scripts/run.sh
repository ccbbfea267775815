#!/usr/bin/env bash
# Installs what is missing, builds minfer-cli and runs it.
#
#   scripts/run.sh                         a small real model (fetched once) completes a default prompt
#   scripts/run.sh -p "Once upon a time"   the same model, your arguments
#   scripts/run.sh -m FILE -p "prompt"     your own GGUF file
set -euo pipefail
source "$(dirname "$0")/common.sh"

own_model=no default_prompt=yes
for argument in "$@"; do
  case $argument in
    -m* | --model*) own_model=yes ;;
    -p* | --prompt* | -f* | --file* | -h | --help | --info | --version | --bench* | --profile*) default_prompt=no ;;
  esac
done

install_build_packages
build default minfer-cli
if [ $own_model = no ]; then
  if ! fetch_model; then
    say "without network, pass a GGUF file of your own:  scripts/run.sh -m FILE -p \"prompt\""
    exit 1
  fi
  set -- -m "$model_file" "$@"
fi
[ $# -gt 2 ] || set -- "$@" -n 64
[ $default_prompt = no ] || set -- "$@" -p "The capital of France is"
"$minfer_root/build/default/apps/minfer-cli" "$@"
