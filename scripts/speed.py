#!/usr/bin/env python3
"""Whole-process speed of minfer-cli: the median (minimum, maximum) of several runs of the times that it reports.

  scripts/speed.py MODEL [--cli PATH] [--runs 5] [--prompt-words 512] [-n 64] [-- minfer-cli flags]

Prefill is measured on a prompt of that many one-token words, decode behind a short prompt. Load, prefill and decode
are minfer's own clocks (tokenizing is part of load); the time to the first token counts from the start of the process.
"""
import argparse
import re
import statistics
import subprocess
import tempfile

FIGURES = {
    "load s": r"load\s+([\d.]+) s",
    "prefill tokens/s": r"prefill\s+\d+ tokens\s+[\d.]+ ms\s+([\d.]+) tokens/s",
    "decode tokens/s": r"decode\s+\d+ tokens\s+[\d.]+ ms\s+([\d.]+) tokens/s",
    "first token s": r"first token\s+([\d.]+) s",
    "peak memory MB": r"peak memory ([\d.]+) MB",
}


def measure(command: list[str], runs: int, figures: list[str]) -> None:
    values = {name: [] for name in figures}
    for _ in range(runs + 1):  # the first one fills the page cache and is not counted
        log = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=True).stderr
        for name in figures:
            match = re.search(FIGURES[name], log)
            if match is None:
                raise SystemExit(f"no '{name}' in the log:\n{log}")
            values[name].append(float(match[1]))
    for name, seen in values.items():
        seen = seen[1:]
        print(f"  {name:18} {statistics.median(seen):9.2f}  ({min(seen):.2f} .. {max(seen):.2f})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--cli", default="build/default/apps/minfer-cli")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--prompt-words", type=int, default=512)
    parser.add_argument("-n", type=int, default=64)
    options, flags = parser.parse_known_args()
    base = [options.cli, "-m", options.model, "--ignore-eos", *[flag for flag in flags if flag != "--"]]

    print(f"decode of {options.n} tokens behind a short prompt")
    short = [*base, "-p", "The capital of France is", "-n", str(options.n)]
    measure(short, options.runs, ["load s", "decode tokens/s", "first token s", "peak memory MB"])
    print(f"prefill of {options.prompt_words} tokens")
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as prompt:
        prompt.write(" the" * options.prompt_words)
        prompt.flush()
        measure([*base, "-f", prompt.name, "-n", "1"], options.runs, ["prefill tokens/s", "first token s", "peak memory MB"])


if __name__ == "__main__":
    main()
