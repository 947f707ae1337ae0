"""The best candidates once more, until the best of those that hold is better than whatever else may yet hold."""

from __future__ import annotations

from bisect import insort
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isfinite
from typing import NamedTuple

from simkv.planner.confirm import confirm
from simkv.planner.found import Confirmed, Rated
from simkv.planner.means import Means
from simkv.planner.objective import Aim
from simkv.planner.types import Slo

FINALISTS = 3
"""Tried at once, and as many are to hold where that is to be had: a winner and runners-up."""
MOST_TRIED = 24
"""In one round, with one number of units or another."""
LESS = 0.85
"""Of what a unit carried with one seed: tried next where the most is planned for and that didn't hold."""
LEAST = 0.5
"""Of the same: no less is tried."""


class _Next(NamedTuple):
    """A candidate that may be tried next; in the order of what is best."""

    score: float
    less_load: float
    name: str
    units: int
    rated: Rated


class Finals:
    """Confirms candidates, the best first; one that doesn't hold comes again with one unit more, or with less load."""

    def __init__(self, aim: Aim, slo: Slo, means: Means) -> None:
        self.aim, self._slo, self._means = aim, slo, means
        self._queue: list[_Next] = []
        self._first: dict[str, Rated] = {}
        self.tried: list[Confirmed] = []
        """In the order in which they were tried."""

    def run(self, rated: Sequence[Rated]) -> None:
        """Confirm the best of ``rated`` and of those that were there before."""
        for one in rated:
            if isfinite(one.score) and one.units is not None and one.candidate.name not in self._first:
                self._first[one.candidate.name] = one
                self._put(one, one.units)
        tried = beyond = 0
        while self._queue and tried < MOST_TRIED:
            best = self.best
            decided = best is not None and self._queue[0].score >= score(best, self.aim)
            if decided and (len(self.holding) >= FINALISTS or beyond >= FINALISTS):
                break
            some, self._queue = self._queue[:FINALISTS], self._queue[FINALISTS:]
            tried, beyond = tried + len(some), beyond + len(some) * decided
            found = confirm([(one.rated, one.units) for one in some], self.aim, self._slo, self._means)
            self.tried += found
            for confirmed in found:
                if not confirmed.holds:
                    self._again(confirmed)

    def know(self, rated: Mapping[str, Rated]) -> None:
        """Take over what is known better of candidates by now; of loads that were lowered nothing is."""
        if self.aim.of_load:
            self.tried = [replace(one, rated=rated[one.rated.candidate.name]) for one in self.tried]

    def rated(self, one: Rated) -> Rated:
        """Return ``one`` as it was tried last, as it is where it wasn't."""
        return next((each.rated for each in reversed(self.tried) if each.rated.candidate == one.candidate), one)

    @property
    def holding(self) -> list[Confirmed]:
        """Return those that hold, the best first."""
        return sorted((one for one in self.tried if one.holds), key=lambda one: rank(one, self.aim))

    @property
    def best(self) -> Confirmed | None:
        """Return the best of those that hold; None: none does."""
        return next(iter(self.holding), None)

    @property
    def refuted(self) -> list[Confirmed]:
        """Return those that held with no number of units that was tried, each with the most."""
        held = {one.rated.candidate.name for one in self.holding}
        last = {one.rated.candidate.name: one for one in self.tried if one.rated.candidate.name not in held}
        return list(last.values())

    def _put(self, rated: Rated, units: int) -> None:
        insort(
            self._queue, _Next(_score(rated, units, self.aim), -rated.capacity.load, rated.candidate.name, units, rated)
        )

    def _again(self, one: Confirmed) -> None:
        """Have a candidate that didn't hold come again, where there is another way to have it."""
        rated, choice = one.rated, one.rated.choice
        if self.aim.of_load:
            if choice.units is None and one.units + 1 <= self.aim.most_units(choice):
                self._put(rated, one.units + 1)
            return
        load = LESS * rated.capacity.load
        if load >= LEAST * self._first[rated.candidate.name].capacity.load:
            capacity = replace(rated.capacity, load=load, over=rated.capacity.load)
            less = replace(rated, capacity=capacity, score=self.aim.score(choice, load, capacity.summary))
            self._put(less, one.units)


def score(one: Confirmed, aim: Aim) -> float:
    """Return what is minimised, with the units that it was confirmed with."""
    return _score(one.rated, one.units, aim)


def _score(rated: Rated, units: int, aim: Aim) -> float:
    return aim.score_with(units, rated.choice, rated.capacity.load, rated.capacity.summary)


def rank(one: Confirmed, aim: Aim) -> tuple[float, float, tuple[float, ...], str]:
    """Return what confirmed candidates are ordered by: score, what a unit carries, latencies, name."""
    latencies = tuple(target.mean for target in one.targets.values())
    return (score(one, aim), -one.rated.capacity.load, latencies, one.rated.candidate.name)
