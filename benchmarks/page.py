"""The page of what simulating costs, docs/performance.md, made of what was measured."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

from benchmarks.scale import QUICK, SERIES, Cost, Size

Measured = Sequence[tuple[Size, Cost]]
HEAD = """# What simulating costs

Made by `make bench` (`python -m benchmarks --write docs/performance.md`), not by hand. Times are of one machine, and
on another, or a busy one, they differ by half or twice: {machine}. Each figure is of a process of its own, short ones
the quickest of up to three.

- **a request**: the simulation's wall time by its requests, without the start of Python and without reading and writing
  files. Where it stays flat a run of ten times the requests takes ten times as long.
- **events**: what was scheduled with SimPy. **decisions**: arrivals, and times at which an engine decided what runs
  next. **steps**: forward steps of engines; those between two decisions are booked at once and cost nothing each.
- **bare events**: how many timeouts of a SimPy process that does nothing take as long as one request, or as one of the
  run's events, measured in the same process just before: figures that hardly depend on the machine.
- **memory**: the most that the process had, Python and its libraries (about 100 MiB) included.
"""
COLUMNS = (
    "requests", "wall s", "a request, µs", "bare events a request", "events/s", "bare events an event", "decisions/s",
    "steps/s", "memory, MiB",
)  # fmt: skip
MEANS = {
    "requests in VRAM": "1,000 tokens in and 200 out at 5 requests a second (`scenarios/speed-100k.yaml`).",
    "requests in all tiers": "Multi-turn sessions through VRAM, DRAM and SSD (`scenarios/speed-sessions.yaml`).",
    "replicas": "The same sessions on more replicas, eight a host; the load grows with them.",
    "block size": "The same sessions: a prefix is kept as runs of blocks, so their size hardly matters.",
    "tiers": "The same sessions; every tier adds transfers, each of which is at least one event.",
    "laws": "The same sessions, and what it costs to have every law of INVARIANTS.md checked on the way.",
}


def machine() -> str:
    """Return what measured: cores, CPU, and versions; no name of the machine."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.is_file():
        lines = [line.split(":", 1) for line in info.read_text().splitlines() if line.startswith("model name")]
        cpu = lines[0][1].strip() if lines else cpu
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return f"{os.cpu_count()} cores ({cpu}), {python}, SimPy {version('simpy')}, numpy {version('numpy')}"


def row(name: str, cost: Cost) -> list[str]:
    """Return the cells of one size."""
    return [
        name,
        f"{cost.requests:,}",
        f"{cost.wall_s:,.2f}",
        f"{cost.request_us:,.0f}",
        f"{cost.bare_events:,.0f}",
        f"{cost.events / cost.wall_s:,.0f}",
        f"{cost.event_ratio:,.1f}",
        f"{cost.decisions / cost.wall_s:,.0f}",
        f"{cost.steps / cost.wall_s:,.0f}",
        f"{cost.peak_mib:,.0f}",
    ]


def table(series: str, measured: Measured) -> list[str]:
    """Return the lines of one series, and how flat it is."""
    mine = [(size.name, cost) for size, cost in measured if size.series == series]
    if not mine:
        return []
    lines = [f"## By {series}", "", MEANS[series], "", _line(["", *COLUMNS]), _line(["---", *["---:"] * len(COLUMNS)])]
    lines += [_line(row(name, cost)) for name, cost in mine]
    first, last = mine[0], mine[-1]
    ratio = last[1].request_us / first[1].request_us
    return [*lines, "", f"A request at {last[0]} costs {ratio:.2f} times what it costs at {first[0]}.", ""]


def page(measured: Measured, commands: Mapping[str, str], quick: bool = False) -> str:
    """Return the page; ``commands``: what other benchmarks printed, by their titles."""
    lines = [HEAD.format(machine=machine())]
    if quick:
        lines += [f"**Made with `--quick`, of requests / {QUICK}: these figures mean nothing.**", ""]
    for series in SERIES:
        lines += table(series, measured)
    for title, printed in commands.items():
        lines += [f"## {title}", "", "```text", printed.strip(), "```", ""]
    return "\n".join(lines).rstrip() + "\n"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
