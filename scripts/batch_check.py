#!/usr/bin/env python3
"""What gpu_check.sh asks about batches: makes their prompts, and holds their records against each other.

  batch_check.py prompts COUNT [--words N] [--max-tokens N] [--ignore-eos]    requests, one JSON object a line, on stdout
  batch_check.py compare TOGETHER ALONE [PLAIN]    the records of the same requests, run side by side and one by one, both
                                                   with --logprobs 2; PLAIN: side by side without
  batch_check.py perplexity LOG MODEL TRUTH        the lines of --perplexity --json against TRUTH (a perplexity.json)
  batch_check.py model NAME FOLDERS                the first file in these folders (a:b) whose name begins like NAME

Prompts are pieces of README.md, drawn with a fixed seed; every fourth begins with the same 60 words.
"""
import argparse
import json
import os
import pathlib
import random
import re
import sys

NEAR_TIE = 0.05       # where texts differ, the margin of the choice that they part at is below this
MOST_DIFFERENT = 0.1  # of the requests
PERPLEXITY_OFF = 0.003


def prompts(count: int, n_words: int, max_tokens: int, ignore_eos: bool) -> None:
    readme = pathlib.Path(__file__).resolve().parent.parent / "README.md"
    words = re.findall(r"\S+", readme.read_text(encoding="utf-8"))
    draw = random.Random(5)
    for i in range(count):
        n = n_words or draw.randint(4, 120)
        begin = draw.randrange(len(words) - n)
        text = words[begin:begin + n]
        if not n_words and i % 4 == 0:
            text = words[:60] + text
        request = {"id": i, "prompt": " ".join(text), "max_tokens": max_tokens}
        if ignore_eos:
            request["ignore_eos"] = True
        print(json.dumps(request))


def read_records(path: str) -> list[dict]:
    records = [json.loads(line) for line in open(path, encoding="utf-8")]
    failed = [record for record in records if "error" in record]
    if failed:
        sys.exit(f"{path}: {len(failed)} of {len(records)} failed, the first: {failed[0]['error']}")
    return records


def margin_at_parting(together: dict, alone: dict) -> float:
    """The margin, alone, of the first choice that differs; infinite where one text ends and the other does not."""
    for ours, theirs in zip(together["logprobs"], alone["logprobs"]):
        if ours["id"] != theirs["id"]:
            first, second = (top["logprob"] for top in theirs["top_logprobs"])
            return first - second
    return float("inf")


def compare(together_path: str, alone_path: str, plain_path: str | None) -> None:
    together, alone = read_records(together_path), read_records(alone_path)
    if [r["id"] for r in together] != [r["id"] for r in alone]:
        sys.exit("the two hold records of different requests")
    faults = []
    if plain_path:
        plain = read_records(plain_path)
        if [r["text"] for r in plain] != [r["text"] for r in together]:
            faults.append("asking for logprobs changes texts")
    margins = [margin_at_parting(a, b) for a, b in zip(together, alone) if a["text"] != b["text"]]
    share = len(margins) / len(alone)
    n_tokens = sum(r["usage"]["completion_tokens"] for r in alone)
    print(f"texts: {len(alone) - len(margins)} of {len(alone)} equal ({n_tokens} tokens); "
          f"the others part at margins {' '.join(f'{m:.4f}' for m in sorted(margins)) or 'n/a'}")
    if share > MOST_DIFFERENT:
        faults.append(f"{100 * share:.1f} % of the texts differ, {100 * MOST_DIFFERENT:.0f} are allowed")
    if margins and max(margins) >= NEAR_TIE:
        faults.append(f"a text parts at a margin of {max(margins):.4f}, {NEAR_TIE} is a near-tie")
    if faults:
        sys.exit("; ".join(faults))


def perplexity(log: str, model: str, truth_path: str) -> None:
    truth = json.load(open(truth_path, encoding="utf-8"))["truth_running"][model]
    rows = [json.loads(line) for line in open(log, encoding="utf-8") if line.startswith("{")]
    windows = [row["perplexity"] for row in rows if "window" in row]
    if len(windows) != len(truth):
        sys.exit(f"{len(windows)} windows, the truth has {len(truth)}")
    worst = max(abs(got / want - 1) for got, want in zip(windows, truth))
    print(f"perplexity: {windows[-1]:.4f}, the truth is {truth[-1]:.4f}; off by {100 * worst:.4f} % at most")
    if not worst <= PERPLEXITY_OFF:
        sys.exit(f"off by {100 * worst:.4f} %, {100 * PERPLEXITY_OFF:.1f} are allowed")


def model(name: str, folders: str) -> None:
    def plain(text: str) -> str:
        return re.sub(r"[^a-z0-9]", "", text.lower())

    found = sorted(path for folder in folders.split(":") if os.path.isdir(folder)
                   for path in pathlib.Path(folder).glob("*.gguf") if plain(path.name).startswith(plain(name)))
    if not found:
        sys.exit(f"no model like {name} in {folders}")
    print(found[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_subparsers(dest="what", required=True)
    make = what.add_parser("prompts")
    make.add_argument("count", type=int)
    make.add_argument("--words", type=int, default=0, help="of every prompt; 0: 4 to 120")
    make.add_argument("--max-tokens", type=int, default=48)
    make.add_argument("--ignore-eos", action="store_true")
    pair = what.add_parser("compare")
    pair.add_argument("together")
    pair.add_argument("alone")
    pair.add_argument("plain", nargs="?")
    scores = what.add_parser("perplexity")
    for argument in ("log", "model", "truth"):
        scores.add_argument(argument)
    find = what.add_parser("model")
    find.add_argument("name")
    find.add_argument("folders")
    args = parser.parse_args()
    if args.what == "prompts":
        prompts(args.count, args.words, args.max_tokens, args.ignore_eos)
    elif args.what == "compare":
        compare(args.together, args.alone, args.plain)
    elif args.what == "perplexity":
        perplexity(args.log, args.model, args.truth)
    else:
        model(args.name, args.folders)


if __name__ == "__main__":
    main()
