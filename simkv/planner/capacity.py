"""The largest load that one unit carries within the SLO, by bisection with common random numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from math import inf, sqrt
from typing import Any

from simkv.jobs.job import Job
from simkv.planner.load import at_load, real_load
from simkv.planner.offered import offered
from simkv.planner.slo import SERVED, STATIONARY, misses
from simkv.planner.types import Capacity, Effort, Slo, Trial
from simkv.scenario.resolve import Resolved
from simkv.sweeps.simulate import Case, key_of, simulate

LEAST_LOAD = 1e-4
"""Of the first load tried: a unit that doesn't hold the SLO there doesn't hold it at all."""
MOST_LOAD = 1e4
"""Times the first load tried."""
WIDEST_STEP = 10.0
"""Between two loads that look for a bracket; the first is as wide as the answer may be, each next one twice that."""
MOST_TRIALS = 24
LONG_DRAIN = 1.0
"""A run that takes so many times longer than its arrivals has worked off a queue."""


def largest_load(case: Case, slo: Slo, effort: Effort, start: float | None = None) -> Capacity:
    """Return the largest load that ``case`` carries, to within ``effort.precision`` below one that it doesn't carry.

    From ``start`` (absent: 1) loads go up while they are carried, or down while they aren't; the bracket is then
    halved, in ratios, until it is narrow enough. All loads see the same random numbers. Where noise makes a load
    carried above one that isn't, the answer is the one below: no load above the first that failed is tried.
    Raises InputError, InfeasibleError as :func:`simkv.simulation.run_scenario` does.
    """
    return _Search(case, slo, effort).run(start or 1.0)


def capacity_job(
    case: Case, slo: Slo, effort: Effort, start: float | None = None, label: str = "", resolved: Resolved | None = None
) -> Job:
    """Return the search of :func:`largest_load` as a job; :func:`from_answer` reads its answer."""
    more = {"slo": asdict(slo), "effort": asdict(effort), "start": start, "what": "capacity"}
    return Job(key_of(resolved or case.resolve(), effort.seed, more), work, (case, slo, effort, start), label)


def work(case: Case, slo: Slo, effort: Effort, start: float | None) -> dict[str, Any]:
    """Return what :func:`largest_load` finds as plain data."""
    return to_answer(largest_load(case, slo, effort, start))


def to_answer(capacity: Capacity) -> dict[str, Any]:
    """Return ``capacity`` as JSON can hold it."""
    trials = [{"load": trial.load, "misses": dict(trial.misses)} for trial in capacity.trials]
    over = None if capacity.over == inf else capacity.over
    return {
        "load": capacity.load,
        "over": over,
        "trials": trials,
        "summary": dict(capacity.summary),
        "binds": capacity.binds,
    }


def from_answer(answer: Mapping[str, Any]) -> Capacity:
    """Return what :func:`to_answer` wrote."""
    trials = tuple(
        Trial(trial["load"], {name: (value, limit) for name, (value, limit) in trial["misses"].items()})
        for trial in answer["trials"]
    )
    over = inf if answer["over"] is None else answer["over"]
    return Capacity(answer["load"], over, trials, answer["summary"], answer["binds"])


def trial(case: Case, resolved: Resolved, slo: Slo, load: float, effort: Effort) -> tuple[Trial, dict[str, Any]]:
    """Return whether ``load`` is carried, and the summary of that run."""
    summary = simulate(at_load(case, resolved, load, effort.requests), effort.seed)
    missed = misses(summary, slo)
    if STATIONARY not in missed and _drains_long(summary, resolved, load):
        missed[STATIONARY] = (1.0, 0.0)
    return Trial(real_load(resolved, load), missed), summary


def _drains_long(summary: Mapping[str, Any], resolved: Resolved, load: float) -> bool:
    """Whether most of the run, and of the time of its requests, went by after the last of them had come.

    Arrivals that all come early look like a batch, of which no queue is said to grow.
    """
    load_one = offered(resolved, resolved.scenario.run.seed)
    queue, e2e = summary["queue_s"], summary["e2e_s"]
    if load_one.requests_per_s is None or queue is None or e2e is None:
        return False
    arriving_s = summary["requests"]["arrived"] / (load_one.requests_per_s * load)
    return bool(summary["makespan_s"] > (1 + LONG_DRAIN) * arriving_s and queue["mean"] > e2e["mean"] / 2)


class _Search:
    """One bisection; remembers what it has tried."""

    def __init__(self, case: Case, slo: Slo, effort: Effort) -> None:
        self._case, self._slo, self._effort = case, slo, effort
        self._resolved = case.resolve()
        self._trials: dict[float, Trial] = {}
        self._summaries: dict[float, dict[str, Any]] = {}

    def run(self, start: float) -> Capacity:
        low, high = self._bracket(start)
        while low > 0 and high < inf and high / low > 1 + self._effort.precision:
            middle = sqrt(low * high)
            if len(self._trials) >= MOST_TRIALS or self._real(middle) in self._trials:
                break  # users come whole: nothing is between
            low, high = (middle, high) if self._carried(middle) else (low, middle)
        return self._answer(self._real(low) if low > 0 else 0.0, self._real(high) if high < inf else inf)

    def _bracket(self, start: float) -> tuple[float, float]:
        """Return a load that is carried (0: none is) and one that isn't (inf: all are)."""
        load, up, step = start, self._carried(start), 1.0
        for number in range(MOST_TRIALS):
            step = min(step**2, WIDEST_STEP) if number else 1 + self._effort.precision
            last, load = load, load * step if up else load / step
            if not LEAST_LOAD * start <= load <= MOST_LOAD * start:
                break
            if self._real(load) == self._real(last):
                if not up:
                    break  # a single user already
                continue
            if self._carried(load) != up:
                return (last, load) if up else (load, last)
        return (last, inf) if up else (0.0, last)

    def _real(self, load: float) -> float:
        return real_load(self._resolved, load)

    def _carried(self, load: float) -> bool:
        real = self._real(load)
        if real not in self._trials:
            self._trials[real], self._summaries[real] = trial(self._case, self._resolved, self._slo, load, self._effort)
        return not self._trials[real].misses

    def _answer(self, load: float, over: float) -> Capacity:
        trials = tuple(self._trials[key] for key in sorted(self._trials))
        of = load if load > 0 else trials[0].load
        missed = self._trials[over].misses if over < inf else {}
        return Capacity(load, over, trials, self._summaries[of], first_to_fail(missed))


def first_to_fail(missed: Mapping[str, tuple[float, float]]) -> str:
    """Return the target that is missed by most, of latencies before all others; empty: none is."""
    latencies = [name for name in missed if name not in (STATIONARY, SERVED)]
    by_most = sorted(latencies, key=lambda name: (-missed[name][0] / missed[name][1], name))
    return next(iter([*by_most, *missed]), "")
