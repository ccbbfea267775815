#!/usr/bin/env bash
# Everything that needs a GPU, in one call of a few minutes: tests, both engines against each other, speeds, probes. The
# short table comes last. Exit 1 where anything failed.
#
#   scripts/gpu_check.sh [SECTION...]      sections: tests verify repeat refusals batch signals speed probes (default: all, in that order)
#   MINFER_SECONDS=800 scripts/gpu_check.sh sanitize      compute-sanitizer on a tiny model, a run of its own
#
#   MINFER_BUILD        the build folder (default build/gpu), built anywhere with the same CPU architecture
#   MINFER_ORACLE_DIR   right answers (default tests/data)
#   MINFER_MODEL_DIR    folders with real models, for the tests that take them
#   MINFER_ALLOW_SKIPS  1: tests that skip (no real models here) are no failures
#   MINFER_VOCAB        a GGUF file whose vocabulary the synthetic 7B takes (default: qwen2's of the oracle, where it is)
#   MINFER_7B           a 7B model; default: a synthetic one, written to /dev/shm (else /tmp) and removed afterwards
#   MINFER_SECONDS      what may be spent (default 480): sections that would begin later are counted as not run
#   MINFER_WANT_PREFILL, _DECODE, _START, _TAIL, _TAIL_63, _MEMORY, _BATCH    limits for another card than the H200, see below
# Logs stay in /tmp/minfer_gpu_check.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2

build=${MINFER_BUILD:-build/gpu}
cli=$build/apps/minfer-cli
export MINFER_ORACLE_DIR=${MINFER_ORACLE_DIR:-$PWD/tests/data}
seconds=${MINFER_SECONDS:-480}
vocab=${MINFER_VOCAB:-}
[ -z "$vocab" ] && [ -f "$MINFER_ORACLE_DIR/tokenizer/ggml-vocab-qwen2.gguf" ] &&
  vocab=$MINFER_ORACLE_DIR/tokenizer/ggml-vocab-qwen2.gguf
want_prefill=${MINFER_WANT_PREFILL:-18000}  # tokens/s of 2048
want_decode=${MINFER_WANT_DECODE:-300}      # tokens/s
want_start=${MINFER_WANT_START:-1.5}        # seconds from the start of the process to the first token
want_tail=${MINFER_WANT_TAIL:-1.05}         # time per token at 2047 and 2049 over that at 2048
# ... and at 2111, where 1.05 is the aim: the last 63 rows are a pass of their own that reads all weights (7.9 ms, of which
# 6.0 in GEMMs of 64 rows; 5.4 would do). In one pass of 4096 rows, in small tiles beside the large ones: 1.092.
want_tail_63=${MINFER_WANT_TAIL_63:-1.10}
want_memory=${MINFER_WANT_MEMORY:-3}        # per cent between memory taken and announced
want_batch=${MINFER_WANT_BATCH:-10}         # tokens/s of 64 requests at once over those of one at a time
logs=/tmp/minfer_gpu_check
mkdir -p "$logs"
rm -f "$logs"/*
head -c 2000 README.md >"$logs/prompt"  # 500 to 1200 tokens, by the vocabulary
[ -x "$cli" ] || { echo "gpu_check: no $cli (MINFER_BUILD names the build folder)" >&2; exit 2; }
[ $# -gt 0 ] || set -- tests verify repeat refusals batch signals speed probes

failures=() table=()
out_of_time() { [ $SECONDS -ge "$seconds" ]; }
note() { table+=("$(printf '%-46s %s' "$1" "$2")"); }
fail() { failures+=("$1: $2"); }

# want NAME VALUE OP LIMIT: VALUE must be a number that is OP (>= or <=) LIMIT.
want() {
  local verdict=FAIL
  [[ $2 =~ ^[0-9]+(\.[0-9]+)?$ ]] && awk -v a="$2" -v b="$4" "BEGIN { exit !(a $3 b) }" && verdict=ok
  printf '%-4s %-40s %s, wanted %s %s\n' $verdict "$1" "$2" "$3" "$4"
  note "$1" "$2, wanted $3 $4: $verdict"
  [ $verdict = ok ] || fail "$1" "$2, wanted $3 $4"
}

# ratio A B: A / B, "n/a" where either is no number.
ratio() { awk -v a="$1" -v b="$2" 'BEGIN { if (a + 0 > 0 && b + 0 > 0) printf "%.3f", a / b; else printf "n/a" }'; }

# check NAME LIMIT COMMAND...: runs it with its log in $logs/NAME.log; says how it went and how long it took.
check() {
  local name=$1 limit=$2 start rc=0 took
  shift 2
  if out_of_time; then
    fail "$name" "not run, out of time"
    return 1
  fi
  start=$(date +%s.%N)
  timeout "$limit" "$@" >"$logs/$name.log" 2>&1 || rc=$?
  took=$(date +%s.%N | awk -v start="$start" '{ printf "%.1f", $1 - start }')
  if [ $rc -eq 0 ]; then
    printf 'ok   %-40s %6s s\n' "$name" "$took"
  else
    printf 'FAIL %-40s %6s s, exit %d\n' "$name" "$took" $rc
    tail -n 25 "$logs/$name.log" | sed 's/^/     | /'
    fail "$name" "exit $rc"
  fi
  return $rc
}

# refuses NAME EXIT TEXT COMMAND...: the command must end with EXIT and say TEXT on its last line.
refuses() {
  local name=$1 want=$2 text=$3 rc=0
  shift 3
  timeout 60 "$@" >"$logs/$name.log" 2>&1 || rc=$?
  if [ $rc -eq "$want" ] && tail -n 1 "$logs/$name.log" | grep -q -- "$text"; then
    printf 'ok   %-40s %s\n' "$name" "$(tail -n 1 "$logs/$name.log")"
  else
    printf 'FAIL %-40s exit %d, wanted %d and "%s"\n' "$name" $rc "$want" "$text"
    tail -n 3 "$logs/$name.log" | sed 's/^/     | /'
    fail "$name" "exit $rc, wanted $want"
  fi
}

# interrupted NAME DELAY COMMAND...: SIGINT so many seconds after its start ends it with 130, within a second.
interrupted() {
  local name=$1 delay=$2 pid begun rc=0
  shift 2
  timeout -s KILL 60 "$@" >"$logs/$name.log" 2>&1 &
  pid=$!
  sleep "$delay"
  begun=$(date +%s.%N)
  pkill -INT -P $pid || fail "$name" "had ended before the signal"
  wait $pid || rc=$?
  [ $rc -eq 130 ] || fail "$name" "exit $rc, wanted 130"
  want "$name, s to the end" "$(date +%s.%N | awk -v start="$begun" '{ printf "%.2f", $1 - start }')" "<=" 1
}

# ---- the 7B file, written while the tests run

big=${MINFER_7B:-} big_writer="" own_big=""
start_big() {
  [ -n "$big" ] && return
  local folder=/tmp
  [ -w /dev/shm ] && [ "$(df --output=avail -k /dev/shm | tail -1)" -gt 6000000 ] && folder=/dev/shm
  big=$folder/minfer-synth-7b.gguf own_big=$big
  python3 scripts/synth_gguf.py "$big" --preset qwen2.5-7b ${vocab:+--vocab "$vocab"} >"$logs/synth.log" 2>&1 &
  big_writer=$!
}
wait_big() {
  [ -z "$big_writer" ] && return 0
  wait "$big_writer" || { fail synth_7b "$(tail -n 1 "$logs/synth.log")"; big_writer=""; return 1; }
  big_writer=""
}
clean_up() {
  [ -n "$big_writer" ] && kill "$big_writer" 2>/dev/null
  [ -n "$own_big" ] && rm -f "$own_big"
}
trap clean_up EXIT

# ---- sections

# note_skips NAME LOG: what was skipped, a failure unless allowed.
note_skips() {
  local skipped
  skipped=$(grep "^SKIPPED" "$2" 2>/dev/null | sort | uniq -c | tr -s ' ' | tr '\n' ';')
  [ -n "$skipped" ] || return 0
  note "skipped in $1" "$skipped"
  [ "${MINFER_ALLOW_SKIPS:-}" = 1 ] || fail "skipped in $1" "$skipped"
}

# One process an area ("gemm: ..."), so that a fault in one hides nothing of the others. Hidden tests
# (timings, hogs) are left out: a pattern of names alone would take them in.
section_tests() {
  local program=$build/tests/test_cuda area
  if [ ! -x "$program" ]; then
    fail tests "no $program"
    return
  fi
  "$program" --list-test-names-only 2>/dev/null | sed -n 's/^ *\([a-z0-9_ ]*\): .*/\1/p' | sort -u >"$logs/areas"
  [ -s "$logs/areas" ] || fail tests "no test in $program"
  while read -r area; do
    check "test_${area// /_}" 150 "$program" -w NoTests "~[.]$area: *"
    note_skips "$area" "$logs/test_${area// /_}.log"
  done <"$logs/areas"
  check hogged_memory 60 "$program" -w NoTests "[hog]"
  note_skips "hogged memory" "$logs/hogged_memory.log"
  note "hogged memory" "$(sed -n 's/^hogged memory: //p' "$logs/hogged_memory.log" 2>/dev/null)"
  local line
  while read -r line; do note "" "$line"; done < <(sed -n '/^free running/p' "$logs/test_engine.log" 2>/dev/null)
}

section_verify() {
  local model name
  for model in "$MINFER_ORACLE_DIR"/parity/*.gguf; do
    name=$(basename "${model%.q4_k_m.gguf}")
    for cache in on off; do
      check "verify_${name}_f16_$cache" 60 "$cli" --device cuda --f16-cache $cache --verify --verify-layers -m "$model" \
        -f "$logs/prompt" -n 32
      note "verify $name, f16 $cache" "$(sed -n 's/^logit error *mean \([^ ]*\).*worst \([^ ]*\) .*/\1 worst \2/p' \
        "$logs/verify_${name}_f16_$cache.log") $(sed -n 's/^argmax equal *//p' "$logs/verify_${name}_f16_$cache.log")"
    done
  done
  model=$MINFER_ORACLE_DIR/parity/qwen2-hd128-gqa2.q4_k_m.gguf
  check verify_99_kb 60 env MINFER_SMEM_LIMIT=101376 "$cli" --device cuda --verify -m "$model" -f "$logs/prompt" -n 8
}

# Same tokens with the graph and without, at every run, and with a wait behind every kernel.
section_repeat() {
  local model=$MINFER_ORACLE_DIR/parity/qwen3-qknorm.q4_k_m.gguf sync
  for sync in 0 1; do
    check sync_$sync 60 env MINFER_SYNC=$sync "$cli" -q --device cuda -m "$model" -p "Once upon a time" -n 8 --ignore-eos
  done
  cmp -s "$logs/sync_0.log" "$logs/sync_1.log" || fail sync_0_1 "MINFER_SYNC=1 gives other tokens"
  check graph_0_1_small 90 scripts/ab.sh -r 9 -a MINFER_GRAPH=0 -b MINFER_GRAPH=1 -- \
    "$cli" --device cuda -m "$model" -p "Once upon a time" -n 200 --ignore-eos
  wait_big || return
  check graph_0_1_7b 120 scripts/ab.sh -r 2 -a MINFER_GRAPH=0 -b MINFER_GRAPH=1 -- \
    "$cli" --device cuda -m "$big" -p "Once upon a time" -n 128 --ignore-eos
  note "7B, MINFER_GRAPH 0 (A) and 1 (B), decode" "$(sed -n 's/^decode *//p' "$logs/graph_0_1_7b.log")"
  note "" "$(sed -n 's/^outputs: //p' "$logs/graph_0_1_7b.log")"
}

section_refusals() {
  local small=$MINFER_ORACLE_DIR/parity/qwen2-hd128-gqa2.q4_k_m.gguf
  refuses refuse_context 4 "would fit" "$cli" --device cuda -m "$small" -p x -c 1000000000 -n -1
  refuses refuse_shared_memory 4 "bytes of shared memory" env MINFER_SMEM_LIMIT=1024 "$cli" --device cuda -m "$small" \
    -f "$logs/prompt" -n 1
  refuses refuse_no_card 4 "--device cuda" env CUDA_VISIBLE_DEVICES= "$cli" --device cuda -m "$small" -p x -n 1
}

# bench LOG TEST TOKENS SEQUENCES [value]: one line of --bench --json as a row of the table, or its tokens/s alone.
bench() {
  python3 - "$@" <<'PYTHON'
import json, os, sys
path, test, tokens, sequences, *value = sys.argv[1:]
lines = open(path).read().splitlines() if os.path.exists(path) else []
rows = [json.loads(line) for line in lines if line.startswith("{")]
rows = [row for row in rows if [row["test"], row["tokens"], row["sequences"]] == [test, int(tokens), int(sequences)]]
if not rows:
    print("n/a")
elif value:
    print(f"{rows[0]['tokens_per_second']:.1f}")
else:
    row = rows[0]
    n = row["tokens"] * row["sequences"]
    spread = f"{n / row['seconds_max']:.0f} .. {n / row['seconds_min']:.0f}"
    ceiling = "n/a" if row["of_ceiling"] is None else f"{100 * row['of_ceiling']:.1f} %"
    print(f"{row['tokens_per_second']:9.1f} tokens/s ({spread}), {ceiling} of the ceiling")
PYTHON
}
bench_note() { note "$4" "$(bench "$1" "$2" "$3" "${5:-1}")"; }  # LOG TEST TOKENS LABEL [SEQUENCES]

# matched SED_SCRIPT LOG: the last line that the script prints, "n/a" where there is none.
matched() {
  local found
  found=$(sed -n "$1" "$2" 2>/dev/null | tail -n 1)
  echo "${found:-n/a}"
}

# The clock of speed_start: from before the process to the first byte of its answer (its end, where it gives none).
first_byte='
import subprocess, sys, time
start = time.perf_counter()
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE)
process.stdout.read(1)
took = time.perf_counter() - start
process.stdout.read()
if process.wait() == 0:
    print(f"first byte of the answer {took:.3f} s after the start of the process")
sys.exit(process.returncode)
'

# The start is timed twice, so that the file is in the page cache at the second.
speed_start() {
  local whose="vocabulary of ${vocab##*/}" log=$logs/start_7b_again.log taken announced
  [ -n "$vocab" ] || whose="made-up vocabulary: MINFER_VOCAB names none"
  [ -n "${MINFER_7B:-}" ] && whose="vocabulary of ${MINFER_7B##*/}"
  check start_7b 60 "$cli" --device cuda -m "$big" -p "Once upon a time" -n 1
  check start_7b_again 60 python3 -c "$first_byte" "$cli" --device cuda -m "$big" -p "Once upon a time" -n 1
  want "7B, start to first token, s" "$(matched 's/^first byte of the answer \([0-9.]*\) s .*/\1/p' "$log")" "<=" "$want_start"
  note "" "$whose; load and prefill $(matched 's/.*first token *\([0-9.]* s\).*/\1/p' "$log")"
  taken=$(matched 's/.*device memory: at most \([0-9.]*\) GB taken.*/\1/p' "$log")
  announced=$(matched 's/.*device memory: at most .* taken, \([0-9.]*\) GB announced.*/\1/p' "$log")
  want "7B, memory taken ($taken GB) off announced, %" "$(ratio "$taken" "$announced" |
    awk '/n.a/ { print "n/a"; next } { d = 100 * ($1 - 1); printf "%.1f", d < 0 ? -d : d }')" "<=" "$want_memory"
}

section_speed() {
  wait_big || return
  local log=$logs/bench_7b.log n prefill
  speed_start
  check bench_7b 90 "$cli" --device cuda --bench -m "$big" --bench-prefill 512,2047,2048,2049,2111,4096 \
    --bench-decode 128 --json
  grep -v '^{' "$log"
  for n in 512 2047 2048 2049 2111 4096; do bench_note "$log" prefill $n "7B prefill $n"; done
  bench_note "$log" decode 128 "7B decode 128"
  prefill=$(bench "$log" prefill 2048 1 value)
  want "7B prefill 2048, tokens/s" "$prefill" ">=" "$want_prefill"
  want "7B decode, tokens/s" "$(bench "$log" decode 128 1 value)" ">=" "$want_decode"
  for n in 2047 2049 2111; do
    limit=$want_tail
    [ $n = 2111 ] && limit=$want_tail_63
    want "7B prefill $n, time a token over 2048's" "$(ratio "$prefill" "$(bench "$log" prefill $n 1 value)")" "<=" "$limit"
    [ "$limit" = "$want_tail" ] || note "" "the aim is $want_tail"
  done
  check profile_7b 60 "$cli" --device cuda --profile -m "$big" && cat "$logs/profile_7b.log"
  check bench_7b_deep 60 "$cli" --device cuda --bench -m "$big" --bench-prefill 0 --bench-decode 64 --bench-depth 8192 --json
  bench_note "$logs/bench_7b_deep.log" decode 64 "7B decode 64 behind 8192"
  check bench_7b_off 60 "$cli" --device cuda --f16-cache off --bench -m "$big" --bench-decode 0 --json
  bench_note "$logs/bench_7b_off.log" prefill 2048 "7B prefill 2048, --f16-cache off"
}

# batch NAME LIMIT FLAGS...: requests of $logs/NAME.prompts to records in $logs/NAME.jsonl.
batch() {
  local name=$1 limit=$2
  shift 2
  check "$name" "$limit" "$cli" --device cuda --batch "$logs/$name.prompts" --output "$logs/$name.jsonl" "$@"
}
batch_rate() { matched 's/.* \([0-9.]*\) tokens\/s with prefill .*/\1/p' "$logs/$1.log"; }

# The text of a request does not depend on what runs beside it, but for near-ties.
batch_texts() {
  local model=$1 name
  for name in together plain alone; do scripts/batch_check.py prompts 200 >"$logs/$name.prompts"; done
  batch together 60 -m "$model" --parallel 64 --logprobs 2
  batch plain 60 -m "$model" --parallel 64
  batch alone 120 -m "$model" --parallel 1 --logprobs 2
  check batch_texts 20 scripts/batch_check.py compare "$logs/together.jsonl" "$logs/alone.jsonl" "$logs/plain.jsonl"
  note "${model##*/}, 64 at once and one by one" "$(matched 's/^texts: //p' "$logs/batch_texts.log")"
  note "" "$(batch_rate plain) and $(batch_rate alone) tokens/s; near-ties: $(matched 's/.*completions *//p' "$logs/plain.log")"
}

perplexity() {
  local name=$1 model=$2 folder=$MINFER_ORACLE_DIR/perplexity
  check "perplexity_$name" 60 "$cli" --device cuda -m "$model" --perplexity "$folder/gpl-3.txt" --json
  check "perplexity_${name}_truth" 10 scripts/batch_check.py perplexity "$logs/perplexity_$name.log" "$name" \
    "$folder/perplexity.json"
  note "$name" "$(matched 's/^\(perplexity: .*\)/\1/p' "$logs/perplexity_${name}_truth.log")"
}

chat() {
  local model=$1 device equal=differs
  for device in cpu cuda; do
    check chat_$device 60 "$cli" -q --device $device -m "$model" --chat -p "What is the capital of France?" -n 48
  done
  cmp -s "$logs/chat_cpu.log" "$logs/chat_cuda.log" && equal="is the CPU's"
  note "chat, one turn" "the answer $equal: $(head -c 100 "$logs/chat_cuda.log" | tr '\n' ' ')"
}

section_batch() {
  local name model first="" log=$logs/bench_batch_7b.log n
  for name in smollm2-135m-instruct-q4_1 smollm2-135m-instruct-q4_k_m; do
    model=$(scripts/batch_check.py model $name "${MINFER_MODEL_DIR:-}:models" 2>/dev/null) || continue
    perplexity $name "$model"
    first=${first:-$model}
  done
  if [ -n "$first" ]; then
    chat "$first"
    batch_texts "$first"
  else
    note "skipped in batch" "no SmolLM2 in ${MINFER_MODEL_DIR:-}:models"
    [ "${MINFER_ALLOW_SKIPS:-}" = 1 ] || fail batch "no SmolLM2 in ${MINFER_MODEL_DIR:-}:models"
  fi
  wait_big || return
  scripts/batch_check.py prompts 64 --words 48 --max-tokens 128 --ignore-eos >"$logs/batch_64_7b.prompts"
  head -n 4 "$logs/batch_64_7b.prompts" >"$logs/batch_1_7b.prompts"
  batch batch_64_7b 60 -m "$big" --parallel 64
  batch batch_1_7b 60 -m "$big" --parallel 1
  note "7B, 64 requests at once, one at a time" "$(batch_rate batch_64_7b), $(batch_rate batch_1_7b) tokens/s"
  want "7B, 64 requests at once over one at a time" "$(ratio "$(batch_rate batch_64_7b)" "$(batch_rate batch_1_7b)")" \
    ">=" "$want_batch"
  check bench_batch_7b 90 "$cli" --device cuda --bench -m "$big" --bench-prefill 0 --bench-decode 64 --bench-depth 512 \
    --bench-batch 1,8,9,16,32,64 --bench-repetitions 3 --json
  for n in 1 8 9 16 32 64; do bench_note "$log" decode 64 "7B decode, $n behind 512 tokens each" $n; done
}

# While weights are loaded, a prompt is computed, tokens come, and records of a batch do.
section_signals() {
  wait_big || return
  local run=("$cli" --device cuda -m "$big" -n -1 --ignore-eos -c 30000)
  for _ in $(seq 40); do cat "$logs/prompt"; done >"$logs/long_prompt"  # some 25,000 tokens: a second of prefill
  interrupted sigint_in_load_150_ms 0.15 "${run[@]}" -p "Once upon a time"
  interrupted sigint_in_load_350_ms 0.35 "${run[@]}" -p "Once upon a time"
  interrupted sigint_in_prefill 0.9 "${run[@]}" -f "$logs/long_prompt"
  interrupted sigint_in_decode 2.0 "${run[@]}" -p "Once upon a time"
  scripts/batch_check.py prompts 500 --words 48 --max-tokens 400 --ignore-eos >"$logs/batch_500.prompts"
  interrupted sigint_in_batch 4.0 "$cli" --device cuda -m "$big" --batch "$logs/batch_500.prompts" --output "$logs/sigint.jsonl"
  note "records kept by sigint_in_batch" "$(wc -l <"$logs/sigint.jsonl")"
}

# Every switch of the GEMM, on the same work.
section_probes() {
  wait_big || return
  local tm ks af32 name
  for af32 in 0 1; do
    for ks in 32 64; do
      for tm in 64 128 256; do
        name=probe_tm${tm}_ks${ks}_af32_$af32
        check $name 60 env MINFER_GEMM_TM=$tm MINFER_GEMM_KS=$ks MINFER_GEMM_AF32=$af32 \
          "$cli" --device cuda --bench -m "$big" --bench-decode 0 --bench-repetitions 3 --json
        bench_note "$logs/$name.log" prefill 2048 "prefill 2048: TM $tm, KS $ks, AF32 $af32"
      done
    done
  done
}

# One line of compute-sanitizer's summary for each of its tools: f16 cache on, then memcheck without it.
section_sanitize() {
  local sanitizer model=$MINFER_ORACLE_DIR/parity/qwen2-hd128-gqa2.q4_k_m.gguf tool cache name log
  sanitizer=$(command -v compute-sanitizer || command -v "${CUDA_HOME:-/usr/local/cuda}/bin/compute-sanitizer") || {
    fail sanitize "no compute-sanitizer"
    return
  }
  while read -r tool cache; do
    name=sanitize_${tool}_f16_$cache log=$logs/sanitize_${tool}_f16_$cache.log
    check "$name" 150 "$sanitizer" --tool "$tool" --error-exitcode 9 "$cli" --device cuda --f16-cache "$cache" -m "$model" \
      -p "Once upon a time there was a small runner of language models." -c 64 -n 6 --ignore-eos </dev/null
    grep -h 'SUMMARY:' "$log" 2>/dev/null | sed 's/^/     /'
    # Without a summary the tool did not get to the end, or did not look at all.
    grep -q 'SUMMARY:' "$log" 2>/dev/null || fail "$name" "no summary"
    note "$tool, f16 $cache" "$(matched 's/^=* *\([A-Z]* SUMMARY:.*\)/\1/p' "$log")"
  done <<<"memcheck on
racecheck on
initcheck on
synccheck on
memcheck off"
}

nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm --format=csv,noheader 2>/dev/null ||
  echo "nvidia-smi: not there"
"$cli" --version
case " $* " in *" repeat "* | *" batch "* | *" signals "* | *" speed "* | *" probes "*) start_big ;; esac
for section in "$@"; do
  if ! declare -F "section_$section" >/dev/null; then
    fail "$section" "no such section"
    continue
  fi
  begun=$SECONDS
  echo "== $section"
  "section_$section"
  echo "== $section: $((SECONDS - begun)) s"
done

echo
printf '%s\n' "${table[@]}"
echo "$SECONDS s in all; ${#failures[@]} failures"
[ ${#failures[@]} -eq 0 ] || { printf '  %s\n' "${failures[@]}"; exit 1; }
