"""Successive halving: few requests for all candidates, more for those that may yet be the best.

The answer depends on what is simulated alone, never on who is done first: candidates go in waves of a fixed size, in
an order that is known before, and only what waves before have found decides what a wave tries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite, sqrt
from statistics import median

from simkv.jobs.job import Failure, Job, Outcome
from simkv.planner.bounds import Bounds
from simkv.planner.capacity import capacity_job, from_answer
from simkv.planner.found import Pruned, Rated
from simkv.planner.means import Means
from simkv.planner.objective import Aim
from simkv.planner.space import Choice
from simkv.planner.types import Capacity, Effort, Slo

RUNGS = (Effort(300, 0.35), Effort(800, 0.15), Effort(2000, 0.06))
WAVE = 8
KEPT = (8, 4)
"""How many are kept at most from a rung to the next, and no fewer than half of them are dropped."""
FEWEST = 3
PROOFS = 2
"""How many of the first rung's best, at once, are tried with all effort: only what they cost then prunes others."""
FIRST_GUESS = 0.4
"""Of the bound, where nothing has been simulated yet."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A choice with its bounds."""

    choice: Choice
    bounds: Bounds


@dataclass(frozen=True, slots=True)
class Halved:
    """What came of all candidates."""

    rated: tuple[Rated, ...]
    """The best first."""
    pruned: tuple[Pruned, ...]
    failed: tuple[tuple[Choice, Failure], ...]
    runs: int


class Halving:
    """One search through candidates."""

    def __init__(self, aim: Aim, slo: Slo, means: Means) -> None:
        self._aim, self._slo, self._means = aim, slo, means
        self._cap = inf
        self._rated: dict[str, Rated] = {}
        self._failed: list[tuple[Choice, Failure]] = []
        self._runs = 0

    def run(self, entries: Sequence[Entry], cap: float = inf) -> Halved:
        """Rate ``entries``, the best of them and of those rated before with all effort.

        ``cap``: a score that is confirmed; then nothing but it prunes.
        """
        self._cap = cap
        pruned = self._first_rung(entries)
        for effort, most in zip(RUNGS[1:], KEPT, strict=True):
            self._rung(self._kept(most), effort)
        while unsure := self._unsure():
            self._rung(unsure, RUNGS[-1])
        return self._halved(pruned)

    def finish(self, rated: Sequence[Rated], pruned: Sequence[Pruned]) -> Halved:
        """Rate ``rated``, which were rated before, with all effort; ``pruned`` are those of all runs."""
        self._rung([self._rated[one.candidate.name] for one in rated], RUNGS[-1])
        return self._halved(pruned)

    def _halved(self, pruned: Sequence[Pruned]) -> Halved:
        rated = tuple(sorted(self._rated.values(), key=by_score))
        return Halved(rated, tuple(pruned), tuple(self._failed), self._runs)

    def _first_rung(self, entries: Sequence[Entry]) -> list[Pruned]:
        """Try all that the best so far leaves alive, the most promising first."""
        pruned: list[Pruned] = []
        left = sorted(entries, key=lambda entry: (self.least(entry), -entry.bounds.load, entry.choice.candidate.name))
        while left:
            alive = []
            for entry in left:
                reason = self._beaten(entry)
                if reason:
                    pruned.append(Pruned(entry.choice, entry.bounds, reason))
                else:
                    alive.append(entry)
            wave, left = alive[:WAVE], alive[WAVE:]
            starts = [self._guess(entry) for entry in wave]
            self._do(list(zip(wave, starts, strict=True)), RUNGS[0], len(left))
            self._prove(left)
        return pruned

    def _prove(self, left: Sequence[Entry]) -> None:
        """Try the best so far with all effort, where its score would prune others: fewer requests flatter some."""
        if not self._aim.bounded or isfinite(self._cap):
            return
        best = sorted((one for one in self._rated.values() if isfinite(one.score)), key=by_score)[:PROOFS]
        known = self._known()
        better = [one for one in best if not _proven(one) and one.score < known]
        self._rung([one for one in better if any(one.score < self.least(entry) <= known for entry in left)], RUNGS[-1])

    def _known(self) -> float:
        """Return the best score that is known to be had: a confirmed one, else one found with all effort."""
        if isfinite(self._cap):
            return self._cap
        return min((one.score for one in self._rated.values() if _proven(one)), default=inf)

    def _rung(self, kept: Sequence[Rated], effort: Effort) -> None:
        entries = [
            (Entry(one.choice, one.bounds), _between(one.capacity))
            for one in kept
            if one.effort.requests < effort.requests
        ]
        for begin in range(0, len(entries), WAVE):
            self._do(entries[begin : begin + WAVE], effort, max(0, len(entries) - begin - WAVE))

    def _kept(self, most: int) -> list[Rated]:
        """Return the better half by what they may yet turn out to be, at most ``most``."""
        there = sorted((one for one in self._rated.values() if isfinite(one.best_score)), key=_by_best_score)
        number = min(most, max(FEWEST, -(-len(there) // 2)))
        best = min((one.score for one in there), default=inf)
        return [one for one in there[:number] if one.best_score <= best]

    def _unsure(self) -> list[Rated]:
        """Return those among the best that were found to be so by fewer requests than others."""
        best = sorted((one for one in self._rated.values() if isfinite(one.score)), key=by_score)[:FEWEST]
        return [one for one in best if not _proven(one)]

    def _do(self, wave: Sequence[tuple[Entry, float]], effort: Effort, left: int) -> None:
        """Find the capacities of one wave."""
        effort = replace(effort, seed=self._means.seed)
        jobs = [self._job(entry, effort, start) for entry, start in wave]
        doing = f"capacities by {effort.requests:,} requests"
        outcomes = {outcome.job.key: outcome for outcome in self._means.do(jobs, doing, left)}
        self._runs += sum(len(one.answer["trials"]) for one in outcomes.values() if one.answer is not None)
        for job, (entry, _) in zip(jobs, wave, strict=True):
            self._take(entry, outcomes[job.key], effort)

    def _take(self, entry: Entry, outcome: Outcome, effort: Effort) -> None:
        """Rate one candidate; one that fails isn't rated any more."""
        if outcome.answer is None:
            assert outcome.failure is not None
            self._failed.append((entry.choice, outcome.failure))
            self._rated.pop(entry.choice.candidate.name, None)
        else:
            self._rated[entry.choice.candidate.name] = rate(self._aim, entry, from_answer(outcome.answer), effort)

    def _job(self, entry: Entry, effort: Effort, start: float) -> Job:
        candidate = entry.choice.candidate
        return capacity_job(candidate.case, self._slo, effort, start, candidate.name, entry.choice.resolved)

    def least(self, entry: Entry) -> float:
        """Return a score that the entry can't be better than; ``-inf`` where nothing is known."""
        if not self._aim.bounded:
            return -inf
        return self._aim.score(entry.choice, entry.bounds.load)

    def _beaten(self, entry: Entry) -> str:
        """Return why an entry can't be the best any more; empty: it can."""
        least, known = self.least(entry), self._known()
        if least == inf:
            return f"carries at most {entry.bounds.load:.3g} times the load, with which {self._limits(entry.choice)}"
        if not self._aim.bounded or least <= known:
            return ""
        said = _SAID[self._aim.plan.objective]
        at_best, other = said.format(_shown(least)), said.format(_shown(known))
        return f"carries at most {entry.bounds.load:.3g} times the load, with which it {at_best}; another {other}"

    def _limits(self, choice: Choice) -> str:
        most = self._aim.most_units(choice)
        if most < 1:
            return "not even one unit is within plan.budget"
        if choice.units is None or choice.units > most:
            return f"more units are needed than budget and limit allow ({most:g})"
        return f"{choice.units} units don't carry all of it"

    def _guess(self, entry: Entry) -> float:
        """Return where to begin: as far below the bound as what is most like it."""
        bound = entry.bounds.load
        known = [one for one in self._rated.values() if isfinite(one.bounds.load) and one.capacity.load > 0]
        if not isfinite(bound):
            loads = _alike(entry, [one for one in self._rated.values() if one.capacity.load > 0])
            return median(one.capacity.load for one in loads) if loads else 1.0
        alike = _alike(entry, known)
        share = median(_between(one.capacity) / one.bounds.load for one in alike) if alike else FIRST_GUESS
        return bound * min(share, 1.0)


def _proven(one: Rated) -> bool:
    return one.effort.requests >= RUNGS[-1].requests


def rate(aim: Aim, entry: Entry, capacity: Capacity, effort: Effort) -> Rated:
    """Return what a capacity makes of a candidate."""
    choice, load = entry.choice, capacity.load
    units = aim.units(choice, load)
    return Rated(
        choice=choice,
        bounds=entry.bounds,
        capacity=capacity,
        effort=effort,
        units=units,
        score=aim.score(choice, load, capacity.summary),
        best_score=aim.score(choice, _most(capacity), capacity.summary),
        hour=aim.hour(choice, units) if units is not None else None,
        per_million=aim.per_million(choice, units, load, capacity.summary) if units is not None else None,
    )


_SAID = {
    "cost": "costs {} an hour",
    "gpus": "takes {} GPUs",
    "goodput": "serves {} requests/s",
    "users": "serves {} users",
}


def _shown(score: float) -> str:
    return f"{abs(score):.4g}"


def _alike(entry: Entry, rated: Sequence[Rated]) -> list[Rated]:
    """Return those of the same machine with the same ranks, else of the same machine, else all."""
    for key in (_machine_and_ranks, _machine):
        same = [one for one in rated if key(one.choice) == key(entry.choice)]
        if same:
            return same
    return list(rated)


def _machine(choice: Choice) -> tuple[str, ...]:
    return (choice.candidate.unit.name,)


def _machine_and_ranks(choice: Choice) -> tuple[str, ...]:
    return (choice.candidate.unit.name, str(choice.resolved.scenario.replicas.tensor_parallel))


def _between(capacity: Capacity) -> float:
    """Return the middle of what a capacity was narrowed down to."""
    if capacity.load <= 0:
        return capacity.over
    return sqrt(capacity.load * capacity.over) if isfinite(capacity.over) else capacity.load


def _most(capacity: Capacity) -> float:
    """Return the most that a capacity may be: below the first load that isn't carried."""
    return capacity.over if isfinite(capacity.over) else 10 * capacity.load


def by_score(one: Rated) -> tuple[float, float, str]:
    """Return what candidates are ordered by, the best first: score, what a unit carries, name."""
    return (one.score, -one.capacity.load, one.candidate.name)


def _by_best_score(one: Rated) -> tuple[float, float, str]:
    return (one.best_score, -_most(one.capacity), one.candidate.name)
