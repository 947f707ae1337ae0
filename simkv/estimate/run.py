"""The estimate of a run with its baselines, what is said of it, and where it is refused."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from simkv import units
from simkv.baselines import BASELINES
from simkv.errors import InputError, Problem
from simkv.estimate.load import load_of
from simkv.estimate.work import work_of
from simkv.scenario.build import system_config
from simkv.scenario.resolve import Resolved

TOLD_S = 20.0
"""A run that takes longer says so before it starts."""
DAY_S = 86_400.0
MOST_S = DAY_S
"""A run that takes longer isn't started unless somebody insists."""
LONG = "--long"
BASE_BYTES = 150 << 20
"""Of a run of few requests."""
_ROOM = 0.9
_CGROUPS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a run with its baselines will take, within a factor of about three."""

    requests: float
    decisions: float
    """Of the run itself."""
    time_s: float
    memory_bytes: float


def estimate(
    resolved: Resolved, seed: int | None = None, *, step_exact: bool = False, audit: bool | None = None
) -> Estimate:
    """Return what simulating ``resolved`` will take; raises InputError for a trace that doesn't read."""
    run = resolved.scenario.run
    seed = run.seed if seed is None else seed
    load = load_of(resolved, seed)
    config = replace(system_config(resolved, seed), step_exact=step_exact, audit=audit)
    wanted = [BASELINES[name] for name in run.baselines]
    others = [one.change(config) for one in wanted if one.differs(config)]
    first, *rest = [work_of(one, load) for one in (config, *others)]
    time_s = first.time_s + sum(work.time_s for work in rest)
    return Estimate(
        load.requests, first.decisions, time_s, BASE_BYTES + sum(work.memory_bytes for work in (first, *rest))
    )


def told(found: Estimate) -> str:
    """Return what a user is told before a run that takes long; empty where nobody would mind."""
    if found.time_s < TOLD_S:
        return ""
    return f"this run takes about {spoken(found.time_s)}: {found.requests:,.0f} requests; Ctrl-C ends it early"


def check(resolved: Resolved, found: Estimate) -> None:
    """Raise InputError where a run would take days, or more memory than there is; it names what to lower."""
    room = memory_bytes()
    if found.time_s > MOST_S:
        what = f"this run takes about {spoken(found.time_s)}, more than {spoken(MOST_S)}"
    elif room is not None and found.memory_bytes > _ROOM * room:
        what = f"this run takes about {found.memory_bytes / 1e9:,.0f} GB of memory, and there are {room / 1e9:,.1f} GB"
    else:
        return
    path, value = _to_lower(resolved)
    mend = f"lower it, or give {LONG} to run it all the same"
    raise InputError(Problem(what, mend, resolved.layers.file, None, ".".join(path), value))


def check_length(resolved: Resolved) -> None:
    """Raise InputError where simulating ``resolved`` would take days, or more memory than there is."""
    check(resolved, estimate(resolved))


def memory_bytes() -> int | None:
    """Return how much memory this process may take at most; None where nobody says."""
    found = []
    with contextlib.suppress(ValueError, OSError, AttributeError):
        found.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    for file in _CGROUPS:
        try:
            found.append(int(file.read_text("ascii")))
        except (OSError, ValueError):  # not this kind of system, or "max"
            continue
    try:
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        found += [limit] if limit != resource.RLIM_INFINITY else []
    except ImportError:
        pass
    return min(found, default=None)


_YEAR_S = 365.25 * DAY_S
_UNITS = (("million years", 1e6 * _YEAR_S), ("years", _YEAR_S), ("days", DAY_S), ("h", 3600.0), ("min", 60.0))


def spoken(time_s: float) -> str:
    """Return a time in the unit that one would say it in."""
    for unit, seconds in _UNITS:
        if time_s >= 2 * seconds:
            return f"{time_s / seconds:,.0f} {unit}" if time_s >= 10 * seconds else f"{time_s / seconds:.2g} {unit}"
    return f"{time_s:.0f} s"


def _to_lower(resolved: Resolved) -> tuple[tuple[str, ...], str]:
    """Return what most decides how long a run is, with its value."""
    load: Any = resolved.scenario.workload
    for path in (("requests",), ("limit",), ("size",)):
        if (value := getattr(load, path[0], None)) is not None:
            return ("workload", *path), f"{value:,}"
    if resolved.scenario.run.duration is not None:
        return ("run", "duration"), units.short(resolved.scenario.run.duration, "time")
    return ("workload",), ""
