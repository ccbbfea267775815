#!/usr/bin/env bash
# Two settings of one minfer-cli, run in turn (A B A B ...), their speeds as a ratio, and their complete outputs compared.
#
#   scripts/ab.sh [-r ROUNDS] -a SETTING -b SETTING -- minfer-cli -m FILE -p TEXT -n 128 --ignore-eos
#
# A SETTING is words: NAME=value goes into the environment, anything else is a flag put behind the command's.
#   scripts/ab.sh -a MINFER_GRAPH=0 -b MINFER_GRAPH=1 -- build/default/apps/minfer-cli -m m.gguf -p Once -n 256
#   scripts/ab.sh -r 9 -a "-t 1" -b "-t 2" -- build/default/apps/minfer-cli -m m.gguf -f prompt.txt -n 64
# One run of each warms up and is not counted. The times are minfer's own (prefill, decode: tokens/s); the ratio is B / A
# of each round, its median and spread over the rounds. Exit 1 where any run's output differs from the first one's by a
# byte, or a run fails.
set -euo pipefail

usage() { sed -n '2,12s/^# \{0,1\}//p' "$0" >&2; exit 2; }

rounds=5 setting_a="" setting_b="" given=""
while getopts "r:a:b:" flag; do
  case $flag in
    r) rounds=$OPTARG ;;
    a) setting_a=$OPTARG given+=a ;;
    b) setting_b=$OPTARG given+=b ;;
    *) usage ;;
  esac
done
shift $((OPTIND - 1))
[[ $given == *a* && $given == *b* && $# -gt 0 && $rounds =~ ^[1-9][0-9]*$ ]] || usage
command=("$@")

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# run NAME SETTING: one run; its output in $folder/NAME.out, its log in $folder/NAME.log.
run() {
  local name=$1 word variables=() flags=()
  for word in $2; do
    if [[ $word =~ ^[A-Za-z_][A-Za-z_0-9]*= ]]; then variables+=("$word"); else flags+=("$word"); fi
  done
  if ! env "${variables[@]}" "${command[@]}" "${flags[@]}" >"$folder/$name.out" 2>"$folder/$name.log"; then
    echo "ab: a run of ${name%%.*} ($2) failed:" >&2
    tail -n 3 "$folder/$name.log" >&2
    exit 1
  fi
}

# figure KIND LOG: tokens/s as the log has it; nothing where it has none.
figure() { sed -n "s|^info: $1 .* \([0-9.][0-9.]*\) tokens/s\$|\1|p" "$2"; }

differing=0
for ((round = 0; round <= rounds; ++round)); do
  for side in a b; do
    setting=setting_$side
    run "$side.$round" "${!setting}"
    cmp -s "$folder/a.0.out" "$folder/$side.$round.out" || differing=$((differing + 1))
    [ $round -eq 0 ] && continue
    for kind in prefill decode; do
      figure $kind "$folder/$side.$round.log" >>"$folder/$side.$kind"
    done
  done
done

# summary: median, minimum and maximum of the numbers on standard input.
summary() { sort -g | awk '{ v[NR] = $1 } END { m = (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2
                                               printf "%.4g (%.4g .. %.4g)", m, v[1], v[NR] }'; }

echo "A: ${setting_a:-as it is}    B: ${setting_b:-as it is}    $rounds rounds"
for kind in prefill decode; do
  if [ "$(wc -l <"$folder/a.$kind")" -ne "$rounds" ] || [ "$(wc -l <"$folder/b.$kind")" -ne "$rounds" ]; then
    echo "$kind: n/a (the log has no tokens/s for it)"
    continue
  fi
  printf '%-8s A %s   B %s tokens/s   B / A %s\n' $kind "$(summary <"$folder/a.$kind")" \
    "$(summary <"$folder/b.$kind")" "$(paste "$folder/a.$kind" "$folder/b.$kind" | awk '{ print $2 / $1 }' | summary)"
done
if [ $differing -gt 0 ]; then
  echo "outputs: $differing of $((2 * rounds + 2)) differ from the first one: $(cmp "$folder/a.0.out" "$folder/b.0.out" 2>&1 || true)" |
    sed "s|$folder/||g"
  exit 1
fi
echo "outputs: all $((2 * rounds + 2)) equal, $(wc -c <"$folder/a.0.out") bytes each"
