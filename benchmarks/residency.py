"""CPU milliseconds that the resident set and the predictors take a decode step, beside their targets.

    python benchmarks/residency.py [--steps 60] [--only lru,arc,...]

32 sequences of 8,192 units (131,072 tokens in 16-token blocks, one layer group) read 128 units each a step, of which
four fifths are those of the step before; 30 % of the 262,144 units have room. A step is ``resident``, ``touch``,
``admit`` of what is missing, ``arrived``; for a predictor, ``seen`` and ``predict`` of every sequence.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simkv.kvcache.predict import make_predictor
from simkv.kvcache.residency import ResidentSet

SEQUENCES, UNITS, READS = 32, 8192, 128
KEPT_SHARE, RESIDENT_SHARE = 0.8, 0.3
Reads = NDArray[np.intp]


@dataclass(frozen=True)
class Case:
    """One policy or predictor; ``ms`` 0 where it has no target."""

    name: str
    ms: float
    prepare: Callable[[], Callable[[list[Reads], int], int]]


def reads(steps: int) -> Iterator[list[Reads]]:
    """Yield what every sequence reads, a list a step; equal calls yield the same."""
    rng = np.random.default_rng(0)
    now = [rng.choice(UNITS, READS, replace=False) for _ in range(SEQUENCES)]
    for _ in range(steps):
        for sequence, units in enumerate(now):
            kept = units[rng.random(READS) < KEPT_SHARE]
            fresh = np.setdiff1d(rng.choice(UNITS, READS, replace=False), kept)
            now[sequence] = np.append(kept, rng.permutation(fresh))[:READS]
        yield list(now)


def resident_set(policy: str, **rules: str | float | bool) -> Callable[[], Callable[[list[Reads], int], int]]:
    """Return what prepares a full set and returns its step, which returns how many units were missing."""

    def prepare() -> Callable[[list[Reads], int], int]:
        units_in = ResidentSet(policy, 0.7, **rules)  # type: ignore[arg-type]
        bases = [units_in.open(UNITS) for _ in range(SEQUENCES)]
        units_in.capacity_units = int(SEQUENCES * UNITS * RESIDENT_SHARE)
        newest = units_in.capacity_units // SEQUENCES
        for base in bases:
            units_in.place(np.arange(base + UNITS - newest, base + UNITS), 0)

        def step(units: list[Reads], number: int) -> int:
            read = np.concatenate([base + local for base, local in zip(bases, units, strict=True)])
            missing = read[~units_in.resident(read)]
            units_in.touch(read, number)
            units_in.arrived(units_in.admit(missing, number, read).entered)
            return int(missing.size)

        return step

    return prepare


def predictor(name: str) -> Callable[[], Callable[[list[Reads], int], int]]:
    """Return what prepares a predictor and returns its step, which returns how many units it had not named."""

    def prepare() -> Callable[[list[Reads], int], int]:
        guesser = make_predictor(name, 1)

        def step(units: list[Reads], number: int) -> int:
            missed = 0
            for sequence, local in enumerate(units):
                guess = guesser.predict(sequence, number - 1, READS)
                missed += int(np.count_nonzero(~np.isin(local, guess)))
                guesser.seen(sequence, number, local)
            return missed

        return step

    return prepare


CASES = (
    Case("lru", 5, resident_set("lru")),
    Case("lfu", 5, resident_set("lfu")),
    Case("fifo", 5, resident_set("fifo")),
    Case("priority", 5, resident_set("priority")),
    Case("score", 5, resident_set("score")),
    Case("score-decayed", 0, resident_set("score", count="decayed", half_life=16.0)),
    Case("slru", 15, resident_set("slru")),
    Case("arc", 15, resident_set("arc")),
    Case("s3fifo", 15, resident_set("s3fifo")),
    Case("lru-one-by-one", 15, resident_set("lru", one_by_one=True)),
    Case("last_step", 0, predictor("last_step")),
    Case("stride", 0, predictor("stride")),
    Case("heavy_hitters", 0, predictor("heavy_hitters")),
)


def row(case: Case, steps: int) -> str:
    """Return one line of the table. The first step, which finds everything placed at once, is left out."""
    step = case.prepare()
    took_ms, missing = [], 0
    for number, units in enumerate(reads(steps), start=1):
        start = time.process_time()
        missing += step(units, number)
        took_ms.append((time.process_time() - start) * 1e3)
    median_ms, slowest_ms = float(np.median(took_ms[1:])), max(took_ms[1:])
    verdict = "-" if not case.ms else "over" if median_ms > case.ms else "within"
    share = missing / (steps * SEQUENCES * READS)
    return f"{case.name:<16} {median_ms:>9.2f} {slowest_ms:>11.2f} {case.ms or '-':>7} {share:>8.1%}  {verdict}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--steps", type=int, default=60, help="steps of each case (default 60)")
    parser.add_argument("--only", help="cases, separated by commas: " + ", ".join(case.name for case in CASES))
    options = parser.parse_args()
    chosen = set(options.only.split(",")) if options.only else {case.name for case in CASES}

    print(f"{os.cpu_count()} cores; {SEQUENCES} sequences, {READS} of {UNITS:,} units each a step\n")
    print("case             ms a step  slowest ms  target  missing")
    for case in CASES:
        if case.name in chosen:
            print(row(case, options.steps), flush=True)


if __name__ == "__main__":
    main()
