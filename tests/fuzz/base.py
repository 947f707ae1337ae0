"""What hostile inputs are made from: the shipped scenarios, shortened, and values that nobody should write."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random

REPOSITORY = Path(__file__).parents[2]
_TRACES = {"lengths": "lengths.jsonl", "mooncake": "mooncake.jsonl"}

NASTY = (
    "nan", ".nan", ".inf", "-.inf", "inf", "-1", "0", "-0.0", "1e308", "1e309", "1e-308", "5e-324", "1e-400", '""',
    "''", "[]", "{}", "null", "~", "true", "no", '"25 GB"', '"1e400 GB/s"', "12 parsecs", "1e99 s", "0.1 tokens",
    "1GiBGiB", "!!python/object/apply:os.system [\"true\"]", "!!int 5", "!!binary aGk=", "!x y", "\t", "\x00", "9" * 40,
    "9" * 4000, "-" + "9" * 40, "0x7fffffffffffffff", "1_000_000_000_000_000_000", "&a [*a]", "*a", "<<: *a",
    '"\u202e"', '"\\ud800"', '"\\u0000"', '"\\n"', "|", ">", "|\n  a\n  b", "- a", "a: b", "{a: {a: {a: {}}}}", "? a",
    "'", '"', "[", "{", "]", "@", "`", "%", "\u0085", "\u2028", "\ufeff1", "\u0663", "\u00bd", "1e", "1.2.3",
    "../../etc/passwd", "/dev/zero", "/dev/stdin", ".", "/", "~", "\\", "a" * 5000, "\U0001f600", "[1, 2, 3]",
    "[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]", "{dist: lognormal, median: 1, sigma: 1e15}",
    "{dist: uniform, low: 5, high: 1}", "{dist: geometric, mean: 1e12}", "{dist: empirical, values: []}",
    "{dist: empirical, path: /dev/zero}", "{dist: constant, value: nan}", "{value: 1}", "18446744073709551616",
    "9223372036854775807", "4294967296", "1099511627776", "1e15", "1e18 GB/s", "1e21B", "1e10s", "1ns", "1e-9", "0.1",
    "1e9 req/s", "16777216", "1000000", "1000000000",
)  # fmt: skip
"""Values as a file would have them."""


@cache
def bases() -> dict[str, str]:
    """Return the shipped scenarios by name, each cut down to a few requests and with its paths made absolute."""
    found = {}
    for file in sorted((REPOSITORY / "scenarios").glob("*.yaml")):
        found[file.stem] = _shortened(file.read_text("utf-8"), file.parent)
    return found


def _shortened(text: str, folder: Path) -> str:
    text = re.sub(r"(requests): \d+", r"\1: 12", text)
    text = re.sub(r"\bsize: (\d+)", lambda found: f"size: {min(int(found[1]), 4)}", text)
    if ".access." not in text:  # a log of what was read goes with its lengths
        text = re.sub(r"output_tokens: (\d+)", lambda found: f"output_tokens: {min(int(found[1]), 40)}", text)
    for name in ("agent-sessions ", "../calibration/amd-epyc-2-cores.json"):
        text = text.replace(f": {name}", f": {folder / name.strip()} ")
    text = text.replace(" article-toy.access.jsonl", f" {folder}/article-toy.access.jsonl")
    text = re.sub(r"path: traces/\S+", lambda found: f"path: {_trace(found[0])}\n  limit: 12", text)
    return text


def _trace(path: str) -> str:
    return _TRACES["mooncake" if "conversation" in path else "lengths"]


def write_traces(folder: Path) -> None:
    """Write the small traces that scenarios of traces name."""
    rows = (
        f'{{"timestamp": {1000 * n}, "input_length": {700 + 512 * n}, "output_length": 20, "hash_ids": '
        f"{list(range(2 + n))}}}\n" for n in range(12)
    )  # fmt: skip
    (folder / "mooncake.jsonl").write_text("".join(rows))
    (folder / "lengths.jsonl").write_text(
        "".join(f'{{"arrival_s": {n}, "prompt_tokens": {100 + n}, "output_tokens": {20 + n}}}\n' for n in range(12))
    )


def scenario_text(rng: Random) -> str:
    """Return one of the shortened scenarios."""
    return rng.choice(list(bases().values()))


Mutation = Callable[[Random, list[str]], str]
"""Changes a file's lines in place; returns what it did."""
