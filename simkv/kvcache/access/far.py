"""The blocks out of the recent window, and how much attention tends to go to each.

The blocks that are far when decoding begins have weight rank^-skew, ranks being a random
permutation of theirs a layer group. A block that becomes far later takes one of the ranks there
are at random (its own included) and shares it. Weights never change, so that the running sum
of weights only grows at its end.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from simkv.rng import stream

Indices = NDArray[np.intp]
Shares = NDArray[np.float64]

_ROUNDS = 4
_LOST = 1e-6
"""Weights whose sum is a smaller share than this are too few digits of a running sum to draw by it."""


class FarBlocks:
    """Far blocks of one sequence in order of age, from index 0; each layer group has its own weights."""

    def __init__(self, seed: int, name: str, groups: int, skew: float, blocks: int) -> None:
        """``name`` is that of the sequence's random streams, ``blocks`` how many are far at first."""
        self.groups = groups
        self._skew = skew
        self._joins = stream(seed, f"{name}.joins")
        self._races = stream(seed, f"{name}.races")
        self._resistances = _resistances(skew, blocks)
        ranks = np.tile(np.arange(blocks, dtype=np.int32), (groups, 1))
        self._ranks = stream(seed, f"{name}.ranks").permuted(ranks, axis=1)  # from 0
        self._sums = np.cumsum(1.0 / self._resistances[self._ranks], axis=1)

    def __len__(self) -> int:
        return len(self._ranks[0])

    def grow(self, blocks: int) -> None:
        """Let blocks become far until there are ``blocks``."""
        old = len(self)
        if blocks <= old:
            return
        if blocks > len(self._resistances):
            self._resistances = _resistances(self._skew, 2 * blocks)
        choices = np.arange(old + 1, blocks + 1)[:, None]
        new = (self._joins.random((blocks - old, self.groups)) * choices).astype(np.int32).T
        weights = 1.0 / self._resistances[new]
        last = self._sums[:, -1:] if old else np.zeros((self.groups, 1))
        sums = np.cumsum(np.concatenate((last, weights), axis=1), axis=1)[:, 1:]
        self._ranks = np.concatenate((self._ranks, new), axis=1)
        self._sums = np.concatenate((self._sums, sums), axis=1)

    def draw(self, group: int, shares: Shares, among: NDArray[Any]) -> Indices:
        """Return for each of ``shares`` (uniform in 0..1) one index by weight, with replacement.

        ``among`` (broadcast against ``shares``) says how many blocks, at least 1, the oldest ones, are drawn from.
        """
        sums = self._sums[group]
        found: Indices = sums.searchsorted(shares * sums[among - 1], side="right")
        return found

    def others(self, group: int, count: int, among: int, taken: Indices) -> Indices:
        """Return ``count`` different indices below ``among`` by weight, without replacement, none of ``taken``.

        There must be as many. Draws from the others' weights where these aren't lost in the rounding of the sums,
        some rounds, since most draws of a round may come twice; what is missing then is found by a race.
        """
        before = len(taken)
        for _ in range(_ROUNDS):
            missing = before + count - len(taken)
            if not missing:
                break
            taken = np.concatenate((taken, self._drawn_others(group, missing, among, np.sort(taken))))
        missing = before + count - len(taken)
        found = (taken, self._race(group, missing, among, taken)) if missing else (taken,)
        return np.concatenate(found)[before:]

    def _drawn_others(self, group: int, most: int, among: int, taken: Indices) -> Indices:
        """Return at most ``most`` different indices, in the order drawn; ``taken`` is ascending."""
        sums = self._sums[group]
        gone = np.cumsum(1.0 / self._resistances[self._ranks[group, taken]])
        total = sums[among - 1]
        left = total - gone[-1] if len(gone) else total
        if left < _LOST * total:
            return taken[:0]
        shares = self._races.random(2 * most + 8) * left
        before = (sums[taken] - gone).searchsorted(shares, side="right")  # how many of taken
        shares += np.concatenate(([0.0], gone))[before]
        found = np.minimum(sums.searchsorted(shares, side="right"), among - 1)
        found = found[np.sort(np.unique(found, return_index=True)[1])]
        drawn: Indices = found[~_holds(taken, found)][:most]
        return drawn

    def _race(self, group: int, count: int, among: int, taken: Indices) -> Indices:
        """Return ``count`` different indices below ``among`` by weight, none of ``taken``; ascending.

        Each block arrives after an exponential time of rate its weight, and the first ones win: the same
        law as drawing with replacement and passing over what was drawn before (Efraimidis and Spirakis 2006).
        """
        times = self._races.standard_exponential(among) * self._resistances[self._ranks[group, :among]]
        times[taken] = np.inf
        return np.flatnonzero(times <= np.partition(times, count - 1)[count - 1])[:count]


def _holds(ascending: Indices, values: Indices) -> NDArray[np.bool_]:
    """Return which of ``values`` are among ``ascending``."""
    found = np.zeros(len(values), dtype=np.bool_)
    if len(ascending):
        np.equal(ascending[np.minimum(ascending.searchsorted(values), len(ascending) - 1)], values, out=found)
    return found


def _resistances(skew: float, ranks: int) -> Shares:
    """Return 1 / weight by rank."""
    return np.arange(1, ranks + 1, dtype=np.float64) ** skew
