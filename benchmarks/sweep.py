"""How much faster a sweep is on all cores than on one process, and how long a plan takes, beside their targets.

    python benchmarks/sweep.py [--plan]

The sweep is that of 60 points over p, β and λ; the same command runs with one process and with as many as there are
cores, each into a folder of its own, and their tables must be the same to the last byte.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from simkv.jobs.workers import Workers

ROOT = Path(__file__).parents[1]
SWEEP = (
    "sweep", "scenarios/long-context-active.yaml", "--grid", "p=0.1:1.0:0.1", "--grid", "beta=0,0.5,0.9",
    "--grid", "lambda=0.5,0.8",
)  # fmt: skip
SMALL = (*SWEEP[:2], "--set", "workload.output_tokens=8", "--grid", "p=0.2,0.4")
PLAN = ("plan", "scenarios/plan-chat-70b.yaml")
RATIO, SWEEP_S, PLAN_S = 1.7, 120.0, 180.0


def wall_s(words: tuple[str, ...], *more: str) -> float:
    """Run a command of simkv from the root; return the seconds that it took."""
    begun = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "simkv", *words, *more], cwd=ROOT, check=True, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    return time.perf_counter() - begun


def main() -> None:
    """Print both ratios and times."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--plan", action="store_true", help="plan too, which takes minutes")
    parser.add_argument("--small", action="store_true", help="two points only, to see that it works")
    asked = parser.parse_args()
    words = SMALL if asked.small else SWEEP
    with Workers() as workers, tempfile.TemporaryDirectory() as scratch:
        cores, folder = workers.size, Path(scratch)
        many_s = wall_s(words, "--out", str(folder / "many"))
        one_s = wall_s(words, "--jobs", "1", "--out", str(folder / "one"))
        tables = [(folder / name / "points.csv").read_bytes() for name in ("many", "one")]
        same = "the same table" if tables[0] == tables[1] else "DIFFERENT tables"
        print(f"sweep  {cores} processes {many_s:.1f} s (target {SWEEP_S:.0f}), one {one_s:.1f} s: "
              f"{one_s / many_s:.2f}x (target {RATIO:g} on two cores), {same}")  # fmt: skip
        if asked.plan:
            print(f"plan   {wall_s(PLAN, '--out', str(folder / 'plan')):.1f} s (target {PLAN_S:.0f} on two cores)")


if __name__ == "__main__":
    main()
