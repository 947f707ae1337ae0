"""Cost against scale: one simulation for each size, in a process of its own.

    python -m benchmarks.scale '{"scenario": ..., "sets": [...], "audit": false}'

is that process: it simulates, without baselines and without writing, and prints what it took as JSON.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.bench import ROOT, bare_event_s

PLAIN, SESSIONS = "scenarios/speed-100k.yaml", "scenarios/speed-sessions.yaml"
REPEAT_UNDER_S = 3.0
"""What is over sooner is measured so often that it takes as long, at most ``MOST`` times; the quickest counts."""
MOST = 3
QUICK = 200
"""By how much ``--quick`` divides the number of requests."""


@dataclass(frozen=True)
class Size:
    """One size of one series."""

    series: str
    name: str
    scenario: str
    requests: int
    sets: tuple[str, ...] = ()
    audit: bool = False


@dataclass(frozen=True)
class Cost:
    """What simulating one size took."""

    requests: int
    wall_s: float
    """Of the simulation alone: neither the start of Python nor reading the scenario."""
    events: int
    """Scheduled with SimPy."""
    decisions: int
    """Arrivals, and times at which an engine decided what runs next."""
    steps: int
    """Forward steps that were booked, many of them at once."""
    bare_event_s: float
    """One timeout of one SimPy process, measured in the same process just before."""
    peak_mib: float
    """The process's most memory, libraries included."""

    @property
    def request_us(self) -> float:
        """Microseconds a request."""
        return self.wall_s / self.requests * 1e6

    @property
    def bare_events(self) -> float:
        """How many bare events a request takes as long as: hardly depends on the machine."""
        return self.wall_s / self.requests / self.bare_event_s

    @property
    def event_ratio(self) -> float:
        """How many bare events one event of a run takes as long as."""
        return self.wall_s / self.events / self.bare_event_s


def _replicas(count: int) -> tuple[str, ...]:
    hosts = max(1, count // 8)
    return f"replicas.count={count}", f"replicas.hosts={hosts}", f"workload.arrival.rate={2 * count} req/s"


SIZES = (
    *(Size("requests in VRAM", f"{n:,}", PLAIN, n) for n in (10_000, 100_000, 1_000_000)),
    *(Size("requests in all tiers", f"{n:,}", SESSIONS, n) for n in (10_000, 100_000)),
    *(Size("replicas", str(n), SESSIONS, 20_000, _replicas(n)) for n in (1, 4, 16, 64)),
    *(Size("block size", f"{n} tokens", SESSIONS, 20_000, (f"engine.block_tokens={n}",)) for n in (16, 64, 256, 512)),
    Size("tiers", "VRAM", SESSIONS, 20_000, ("tiers.dram=null", "tiers.ssd=null")),
    Size("tiers", "VRAM and DRAM", SESSIONS, 20_000, ("tiers.ssd=null",)),
    Size("tiers", "VRAM, DRAM and SSD", SESSIONS, 20_000),
    Size("laws", "unchecked", SESSIONS, 20_000),
    Size("laws", "checked (`--audit`)", SESSIONS, 20_000, audit=True),
)
SERIES = tuple(dict.fromkeys(size.series for size in SIZES))


def measure(size: Size, quick: bool = False) -> Cost:
    """Return what ``size`` costs; the quickest of several runs where they are short."""
    requests = max(20, size.requests // QUICK) if quick else size.requests
    costs = [_once(size, requests)]
    while not quick and len(costs) < MOST and sum(cost.wall_s for cost in costs) < REPEAT_UNDER_S:
        costs.append(_once(size, requests))
    return min(costs, key=lambda cost: cost.wall_s)


def _once(size: Size, requests: int) -> Cost:
    sets = [f"workload.requests={requests}", "run.baselines=[]", *size.sets]
    job = {"scenario": size.scenario, "sets": sets, "audit": size.audit}
    command = [sys.executable, "-m", "benchmarks.scale", json.dumps(job)]
    environ = {**os.environ, "SIMKV_AUDIT": "0"}
    child = subprocess.Popen(command, cwd=ROOT, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    said, errors = child.communicate()
    if child.returncode:
        raise SystemExit(f"{size.series}, {size.name}: exit {child.returncode}\n{errors}")
    return Cost(**json.loads(said))


def simulate(scenario: str, sets: list[str], audit: bool) -> dict[str, Any]:
    """Simulate, and return what it took."""
    from simkv.scenario.build import system_config, workload_source
    from simkv.scenario.resolve import resolve
    from simkv.sim.system import System

    resolved = resolve(str(Path(scenario)), sets)
    bare_s = min(bare_event_s() for _ in range(3))
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)  # as the command does
    begun = time.perf_counter()
    config = replace(system_config(resolved), audit=audit)
    data = System(config, workload_source(resolved, resolved.scenario.run.seed)).run()
    wall_s = time.perf_counter() - begun
    return {
        "requests": data.finished,
        "wall_s": wall_s,
        "events": data.events,
        "decisions": data.macro_steps + data.arrived,
        "steps": data.steps_total,
        "bare_event_s": bare_s,
        "peak_mib": peak_mib(),
    }


def peak_mib() -> float:
    """Return the most memory that this program has had; getrusage counts what the one had that started it."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM")) / 1024


if __name__ == "__main__":
    print(json.dumps(simulate(**json.loads(sys.argv[1]))))
