"""How long a sweep will take: a few of its runs estimated, spread evenly over its points."""

from __future__ import annotations

from dataclasses import dataclass

from simkv.errors import InputError, Problem, SimkvError
from simkv.estimate import LONG, check, estimate, spoken
from simkv.sweeps.axes import assignments
from simkv.sweeps.layout import Layout
from simkv.sweeps.simulate import Case, Written

LOOKED_AT = 5
"""Points."""
MOST_S = 7 * 86_400.0
"""A sweep that takes longer isn't started unless somebody insists."""
TOLD_S = 60.0


@dataclass(frozen=True, slots=True)
class Forecast:
    """What is to be expected of a sweep."""

    runs: int
    time_s: float
    processes: int

    @property
    def told(self) -> str:
        """What a user is told before it starts; empty where nobody would mind."""
        if self.time_s < TOLD_S:
            return ""
        on = f" on {self.processes} processes" if self.processes > 1 else ""
        return f"these {self.runs:,} runs take about {spoken(self.time_s)}{on}, if none is kept from before"


def forecast(layout: Layout, written: Written, processes: int, insist: bool = False) -> Forecast:
    """Return what ``layout`` will take.

    Raises InputError where that, or one of its runs, would take days or more memory than there is, unless somebody
    insists.
    """
    open_points = [point for point in layout.points if point.failure is None]
    chosen = open_points[:: max(1, -(-len(open_points) // LOOKED_AT))]
    times_s = []
    for point in chosen:
        try:
            resolved = Case(written, assignments(layout.axes, point.params)).resolve()
            found = estimate(resolved, point.seed)
        except SimkvError:  # the run itself will say so
            continue
        if not insist:
            check(resolved, found)
        times_s.append(found.time_s)
    runs = len(layout.jobs)
    each_s = sum(times_s) / len(times_s) if times_s else 0.0
    whole = Forecast(runs, each_s * runs / max(1, min(processes, runs)), processes)
    if whole.time_s > MOST_S and not insist:
        what = f"{runs:,} runs take about {spoken(whole.time_s)}, more than {spoken(MOST_S)}"
        mend = f"take fewer points with --sample, or shorter runs, or give {LONG} to start it all the same"
        raise InputError(Problem(what, mend, file=written.file))
    return whole
