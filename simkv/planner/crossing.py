"""The load at which a target crosses its limit, looked for beside a load that is known: a few runs, one percent.

A bisection says between which two loads the answer lies. To compare configurations that differ by little that is too
coarse, and finer bisections take too many runs. Here the answer is where the target that binds is exactly at its
limit, by straight lines in logarithms of load and latency: the next load tried is where the line through the last
ones crosses, until one is tried that is no farther from the crossing than the precision asked for. Where nothing but
a growing queue (or requests turned away) tells the loads apart, there is no line, and the bracket is halved.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import exp, inf, log, sqrt
from typing import Any

from simkv.jobs.job import Job
from simkv.planner.capacity import first_to_fail, trial
from simkv.planner.load import real_load
from simkv.planner.slo import measured
from simkv.planner.types import Capacity, Effort, Slo
from simkv.sweeps.simulate import Case, key_of

MOST_TRIALS = 8
SLOPE = 2.0
"""By how many percent a latency grows with a percent of load, where nothing is known."""
_SLOPES = (0.5, 20.0)
_FURTHEST = (1.4, 2.0, 4.0, 10.0)
"""How far from the last load the next one may be, the last for all further ones."""
_APART = (1.03, 1.5)
"""Loads closer than this say more of noise than of a slope; loads farther apart say little of either end's."""
_TELLING = (0.1, 4.0)
"""Of its limit; a latency outside says nothing of where the limit is reached."""


@dataclass(frozen=True, slots=True)
class Near:
    """Where to begin: a load, and how steep latency is there."""

    load: float
    slope: float = SLOPE


@dataclass(frozen=True, slots=True)
class Crossing:
    """The largest load that is carried."""

    load: float
    """Times the scenario's own; 0: no load tried was carried."""
    low: float
    """The largest load tried that was carried; 0: none."""
    high: float
    """The smallest load tried that wasn't; inf: none."""
    uncertainty: float
    """Relative, of ``load``; inf where there is no bracket."""
    binds: str
    """Target at its limit there, or ``stationary``, ``served``; empty: nothing failed."""
    runs: int

    def to_answer(self) -> dict[str, Any]:
        """Return it as JSON can hold it."""
        return {name: None if value == inf else value for name, value in asdict(self).items()}


def of_answer(answer: Mapping[str, Any]) -> Crossing:
    """Return what :meth:`Crossing.to_answer` wrote."""
    whole: dict[str, Any] = {name: inf if value is None else value for name, value in answer.items()}
    return Crossing(**whole)


def near(capacity: Capacity, slo: Slo) -> Near:
    """Return where a bisection says that its unit's limit is."""
    if capacity.load <= 0:
        return Near(min(capacity.over, 1.0))
    if capacity.over == inf:
        return Near(capacity.load)
    failed = next(one for one in capacity.trials if one.load == capacity.over)
    missed = {name: value / limit for name, (value, limit) in failed.misses.items() if limit > 0}
    held = {name: value / limit for name, value, limit in measured(capacity.summary, slo) if limit > 0}
    slopes = [
        log(ratio / held[name]) / log(capacity.over / capacity.load)
        for name, ratio in missed.items()
        if held.get(name, 0.0) > 0
    ]
    known = capacity.over / capacity.load >= _APART[0] and slopes
    return Near(sqrt(capacity.load * capacity.over), _within(max(slopes)) if known else SLOPE)


def crossing(case: Case, slo: Slo, effort: Effort, begin: Near) -> Crossing:
    """Return the load at which ``case`` is at the limit of ``slo``, to within ``effort.precision``.

    All loads see the same random numbers. Raises InputError, InfeasibleError as
    :func:`simkv.simulation.run_scenario` does.
    """
    return _Search(case, slo, effort, begin).run()


def crossing_job(case: Case, slo: Slo, effort: Effort, begin: Near, label: str = "") -> Job:
    """Return the search of :func:`crossing` as a job; :func:`of_answer` reads its answer.

    Raises InputError, InfeasibleError for a case that doesn't resolve.
    """
    more = {"slo": asdict(slo), "effort": asdict(effort), "begin": asdict(begin), "what": "crossing"}
    return Job(key_of(case.resolve(), effort.seed, more), work, (case, slo, effort, begin), label)


def work(case: Case, slo: Slo, effort: Effort, begin: Near) -> dict[str, Any]:
    """Return what :func:`crossing` finds as plain data."""
    return crossing(case, slo, effort, begin).to_answer()


@dataclass(frozen=True, slots=True)
class _Point:
    """One load tried: how near the worst latency is to its limit (1: there)."""

    load: float
    ratio: float
    carried: bool
    binds: str

    @property
    def smooth(self) -> bool:
        """Whether a latency says by itself whether the load is carried."""
        return _TELLING[0] < self.ratio < _TELLING[1] and self.carried == (self.ratio <= 1)


class _Search:
    """One search; remembers what it has tried."""

    def __init__(self, case: Case, slo: Slo, effort: Effort, begin: Near) -> None:
        self._case, self._slo, self._effort, self._begin = case, slo, effort, begin
        self._resolved = case.resolve()
        self._points: list[_Point] = []

    def run(self) -> Crossing:
        load = self._begin.load
        for _ in range(MOST_TRIALS):
            self._try(load)
            if self._there() is not None or self._narrow():
                break
            load = self._next()
            if real_load(self._resolved, load) in [one.load for one in self._points]:
                break  # users come whole: nothing is between
        return self._answer()

    def _try(self, load: float) -> None:
        tried, summary = trial(self._case, self._resolved, self._slo, load, self._effort)
        ratios = {name: value / limit for name, value, limit in measured(summary, self._slo) if limit > 0}
        worst = max(ratios, key=lambda name: ratios[name], default="")
        binds = first_to_fail(tried.misses) if tried.misses else worst
        self._points.append(_Point(tried.load, ratios.get(worst, 0.0), not tried.misses, binds))

    def _low(self) -> _Point | None:
        return max((one for one in self._points if one.carried), key=lambda one: one.load, default=None)

    def _high(self) -> _Point | None:
        """Return the smallest load that wasn't carried, of those above all that were."""
        low = self._low()
        above = [one for one in self._points if not one.carried and (low is None or one.load > low.load)]
        return min(above, key=lambda one: one.load, default=None)

    def _best(self) -> _Point | None:
        """Return the load tried that is nearest to the crossing by its latency."""
        beside = [one for one in (self._low(), self._high()) if one is not None and one.smooth]
        return min(beside, key=lambda one: abs(log(one.ratio)), default=None)

    def _there(self) -> _Point | None:
        """Return the best load tried where it is close enough; a slope that was only told counts by half."""
        best, slope = self._best(), self._seen() or self._begin.slope / 2
        return best if best is not None and abs(log(best.ratio)) / slope <= self._effort.precision else None

    def _narrow(self) -> bool:
        low, high = self._low(), self._high()
        return low is not None and high is not None and high.load / low.load <= 1 + 2 * self._effort.precision

    def _seen(self) -> float | None:
        """Return how steep latency is, by the best load and the next one that tells; None: not seen."""
        best = self._best()
        if best is None:
            return None
        others = [(max(one.load / best.load, best.load / one.load), one) for one in self._points if one.smooth]
        telling = [(apart, one) for apart, one in others if _APART[0] <= apart <= _APART[1]]
        if not telling:
            return None
        slope = _steep(best, min(telling, key=lambda pair: pair[0])[1])
        return _within(slope) if slope > 0 else None

    def _next(self) -> float:
        low, high = self._low(), self._high()
        if low is not None and high is not None:
            stuck = len(self._points) > 2 and self._points[-1].carried == self._points[-2].carried
            if stuck or not (low.smooth and high.smooth) or high.load / low.load > _APART[1]:
                return sqrt(low.load * high.load)
            inside = 1 + self._effort.precision / 2
            return min(max(self._line(low), low.load * inside), high.load / inside)
        furthest = _FURTHEST[min(len(self._points), len(_FURTHEST)) - 1]
        if low is not None:
            last = self._points[-2:]
            if len(last) > 1 and last[1].ratio < _TELLING[1] and _steep(*last) < _SLOPES[0]:
                return low.load * furthest  # it hardly rises
            wanted = self._line(low) * (1 + self._effort.precision / 2) if low.smooth else inf
            return min(max(wanted, low.load * (1 + self._effort.precision)), low.load * furthest)
        assert high is not None, "something was tried"
        wanted = self._line(high) / (1 + self._effort.precision / 2) if high.smooth else 0.0
        return max(min(wanted, high.load / (1 + self._effort.precision)), high.load / furthest)

    def _line(self, point: _Point) -> float:
        """Return where the line through ``point`` crosses the limit."""
        return point.load * exp(max(-5.0, min(5.0, -log(point.ratio) / (self._seen() or self._begin.slope))))

    def _answer(self) -> Crossing:
        low, high, there = self._low(), self._high(), self._there()
        lowest, highest = low.load if low is not None else 0.0, high.load if high is not None else inf
        runs = len(self._points)
        if there is not None:
            return Crossing(self._line(there), lowest, highest, self._effort.precision, there.binds, runs)
        if low is None:
            return Crossing(0.0, 0.0, highest, inf, high.binds if high is not None else "", runs)
        if high is None:
            return Crossing(low.load, low.load, inf, inf, "", runs)
        load = sqrt(low.load * high.load)
        if low.smooth and high.smooth:  # the line between the two, which rises from below the limit to above it
            load = low.load * exp(-log(low.ratio) / _steep(low, high))
        return Crossing(load, low.load, high.load, (high.load / low.load - 1) / 2, high.binds, runs)


def _steep(one: _Point, other: _Point) -> float:
    """Return by how many percent latency grows with a percent of load; 0 where there is none."""
    if min(one.ratio, other.ratio) <= 0:
        return 0.0
    return log(other.ratio / one.ratio) / log(other.load / one.load)


def _within(slope: float) -> float:
    return min(max(slope, _SLOPES[0]), _SLOPES[1])
