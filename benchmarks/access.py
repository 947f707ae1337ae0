"""Wall time of drawing what sparse attention reads, beside its target.

    python benchmarks/access.py [--only topk,...]

Each case opens its sequences and asks every step of each in turn, as an engine with that batch
does; nothing else is simulated. The targets are for two cores.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass, replace

from simkv.kvcache.access import AccessSpec, Dense, Recall, TopK, Window, make_pattern

BLOCK_TOKENS = 16
PROMPT_TOKENS = 128 << 10


@dataclass(frozen=True)
class Case:
    """Sequences of 128Ki tokens that decode so many steps."""

    name: str
    spec: AccessSpec
    seconds: float
    groups: int = 1
    sequences: int = 32
    steps: int = 1000


TOPK = TopK(budget_tokens=2048, recent_tokens=64, sink_tokens=4, skew=1.0, stickiness=0.5)
CASES = (
    Case("topk", TOPK, 3.0),
    Case("topk-independent", replace(TOPK, stickiness=0.0), 4.0),
    Case("topk-uniform", replace(TOPK, skew=0.0), 3.0),
    Case("topk-skewed", replace(TOPK, skew=2.0), 8.0),
    Case("topk-32-groups", TOPK, 4.0, groups=32, sequences=8, steps=250),
    Case("window", Window(1020, 4), 1.0),
    Case("recall", Recall(1024), 1.0),
    Case("dense", Dense(), 1.0),
)


def measure(case: Case) -> tuple[float, int]:
    """Return the seconds that a case takes, and how many units its steps read in all."""
    start = time.perf_counter()
    pattern = make_pattern(case.spec, BLOCK_TOKENS, case.groups, seed=0)
    sequences = [pattern.open(request, PROMPT_TOKENS, case.steps) for request in range(case.sequences)]
    units = sum(len(sequence.reads(step)) for step in range(case.steps) for sequence in sequences)
    return time.perf_counter() - start, units


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", help="cases, separated by commas: " + ", ".join(case.name for case in CASES))
    options = parser.parse_args()
    chosen = options.only.split(",") if options.only else [case.name for case in CASES]

    print("case              groups   reads   wall s  target  µs/read     units/read")
    for case in CASES:
        if case.name in chosen:
            took_s, units = measure(case)
            asked = case.sequences * case.steps
            verdict = "over" if took_s > case.seconds else "within"
            print(
                f"{case.name:<16} {case.groups:>7} {asked:>7,} {took_s:>8.2f} {case.seconds:>7.1f} "
                f"{took_s / asked * 1e6:>8.1f} {units / asked:>14,.1f}  {verdict}",
                flush=True,
            )


if __name__ == "__main__":
    main()
