"""Measure what simulating costs and print it as a page.

    python -m benchmarks [--quick] [--only NAME,...] [--trace conversation_trace.jsonl] [--write docs/performance.md]

The whole takes minutes and wants a quiet machine; ``--quick`` runs the same with hardly any requests, to see that it
works: its figures mean nothing. Parts are the series of ``benchmarks/scale.py`` and the programs of this folder.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from benchmarks.bench import ROOT
from benchmarks.page import page, table
from benchmarks.scale import SERIES, SIZES, Cost, Size, measure

PROGRAMS = {
    "Whole commands beside their targets": ("bench", "--only", "speed-1k"),
    "What sparse attention reads": ("access", "--only", "dense"),
    "Resident sets and predictors": ("residency", "--only", "lru", "--steps", "5"),
    "Sweeps on all cores, and a plan": ("sweep", "--small"),
}
"""Titles, the module of each, and what it is told by ``--quick``."""
WHOLE = {"sweep": ("--plan",)}
NAMES = (*SERIES, *(words[0] for words in PROGRAMS.values()))


def program(module: str, words: tuple[str, ...]) -> str:
    """Run one of the older benchmarks; return what it printed."""
    command = [sys.executable, "-m", f"benchmarks.{module}", *words]
    environ = {**os.environ, "SIMKV_AUDIT": "0"}
    done = subprocess.run(command, cwd=ROOT, env=environ, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"benchmarks.{module}: exit {done.returncode}")
    return done.stdout


def main() -> None:
    """Measure, tell on the way, and write the page where asked."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="hardly any requests: to see that it works")
    parser.add_argument("--only", help="parts, separated by commas: " + ", ".join(NAMES))
    parser.add_argument("--trace", type=Path, help="Mooncake conversation_trace.jsonl, for the commands that read it")
    parser.add_argument("--write", type=Path, help="the page to write")
    asked = parser.parse_args()
    chosen = [name.strip() for name in asked.only.split(",")] if asked.only else list(NAMES)
    unknown = [name for name in chosen if name not in NAMES]
    if unknown:
        parser.error(f"no such part: {', '.join(unknown)}; there are: {', '.join(NAMES)}")

    measured: list[tuple[Size, Cost]] = []
    for series in (name for name in SERIES if name in chosen):
        for size in SIZES:
            if size.series == series:
                measured.append((size, measure(size, asked.quick)))
        print("\n".join(table(series, measured)), flush=True)
    commands: dict[str, str] = {}
    for title, (module, *quick) in PROGRAMS.items():
        if module in chosen:
            words = quick if asked.quick else list(WHOLE.get(module, ()))
            if module == "bench" and asked.trace is not None:
                words += ["--trace", str(asked.trace.resolve())]
            commands[title] = program(module, tuple(words))
            print(f"## {title}\n\n{commands[title]}", flush=True)
    if asked.write is not None:
        asked.write.write_text(page(measured, commands, asked.quick), "utf-8")


if __name__ == "__main__":
    main()
