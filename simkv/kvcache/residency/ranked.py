"""Policies whose victims of one admission are chosen at once, over columns.

All victims are those that the keys put first among the candidates as they stand; nothing is ranked anew between one
victim and the next. For ``lru``, ``lfu``, ``fifo`` and ``priority`` that makes no difference. For ``score`` it does
where several go at once: choosing one by one would rank the rest by each other after every choice.

``score``: λ·recency + (1−λ)·freq with both as ranks among the candidates (how many were used longer ago, how many
have lower counts), equal ones sharing a rank. Compared exactly: with λ = p/q as whole numbers
``p·recency + (q−p)·freq``, the common scale (candidates less one) left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simkv.errors import InputError, Problem
from simkv.kvcache.eviction.score import whole_weights
from simkv.kvcache.residency.units import NOBODY, AnyIds, Flags, Ids, Units

Key = Callable[[Ids], NDArray[Any]]
"""Values of given units; the lowest goes first."""

_SPREAD = 4
"""Values over at most so many numbers a unit are ranked by counting, others by sorting."""
_BUCKET_BITS = 16


def ranks(values: NDArray[Any]) -> NDArray[np.int64]:
    """Return for each value how many are lower; equal values share a rank."""
    if np.issubdtype(values.dtype, np.integer):
        low = int(values.min())
        span = int(values.max()) - low + 1
        if span <= _SPREAD * values.size + 1024:
            offsets = (values - low).astype(np.intp)
            lower = np.zeros(span + 1, np.int64)
            np.cumsum(np.bincount(offsets, minlength=span), out=lower[1:])
            return lower[offsets]
    order = np.argsort(values)
    ascending = values[order]
    starts = np.arange(values.size)
    starts[1:][ascending[1:] == ascending[:-1]] = 0
    found = np.empty(values.size, np.int64)
    found[order] = np.maximum.accumulate(starts)
    return found


def _cut(values: NDArray[Any], most: int) -> Any:
    """Return the value in place ``most`` (from 1) of all sorted; whole numbers by counting 2^16 buckets a round."""
    if not np.issubdtype(values.dtype, np.integer):
        return np.partition(values, most - 1)[most - 1]
    low = int(values.min())
    shift = max(0, (int(values.max()) - low).bit_length() - _BUCKET_BITS)
    buckets = (values - low) >> shift
    up_to = np.cumsum(np.bincount(buckets))
    bucket = int(np.searchsorted(up_to, most))
    if not shift:
        return low + bucket
    return _cut(values[buckets == bucket], most - int(up_to[bucket - 1]) if bucket else most)


def _split(values: NDArray[Any], most: int) -> tuple[Flags, Flags]:
    """Return which values are among the ``most`` lowest in any case, and which tie for the places left."""
    if most >= values.size:
        return np.ones(values.size, np.bool_), np.zeros(values.size, np.bool_)
    cut = _cut(values, most)
    sure, tied = values < cut, values == cut
    if np.count_nonzero(sure) + np.count_nonzero(tied) <= most:
        return sure | tied, np.zeros(values.size, np.bool_)
    return sure, tied


def lowest(ids: Ids, most: int, keys: Sequence[Key]) -> Ids:
    """Return the ``most`` of ``ids`` that ``keys`` put first, in that order; a later key breaks ties of the earlier.

    The last key must tell all units apart. The first is asked once, with all of ``ids``.
    """
    pieces, left = [], ids
    for at, key in enumerate(keys):
        if most <= 0:
            break
        values = key(left)
        sure, tied = _split(values, most)
        first = left[sure]
        ties = [other(first) for other in reversed(keys[at + 1 :])]
        pieces.append(first[np.lexsort((*ties, values[sure]))])
        most -= first.size
        left = left[tied]
    return np.concatenate(pieces) if pieces else NOBODY


class Ranked:
    """Keys over columns; keeps nothing of its own between admissions."""

    def __init__(self, units: Units, keys: Sequence[Key]) -> None:
        self._units = units
        self._keys = keys
        self._offered = NOBODY

    def opened(self, base: int, units: int) -> None:
        """Nothing to keep."""

    def closed(self, base: int, units: int) -> None:
        """Nothing to forget."""

    def touched(self, ids: Ids) -> None:
        """Nothing to keep: the columns say it."""

    def arrived(self, ids: Ids) -> None:
        """Nothing to keep: the columns say it."""

    def offer(self, protect: AnyIds, capacity_units: int) -> int:
        """Settle the candidates."""
        self._offered = self._units.candidates(protect)
        return self._offered.size

    def victims(self, most: int, incoming: Ids) -> Ids:
        """Return the first ``most`` of the candidates."""
        return lowest(self._offered, most, self._keys)

    def known(self) -> None:
        """Nothing beside the columns."""


def _score(units: Units, lam: float | None) -> Key:
    if lam is None:
        raise InputError(Problem("policy score needs a λ", "give a lambda from 0 (lfu) to 1 (lru)"))
    recency_weight, freq_weight = whole_weights(lam)
    if recency_weight + freq_weight > 10**9:
        mend = "write at most nine decimals, so that scores are compared exactly"
        raise InputError(Problem("λ has too many decimals", mend, path="lambda", value=str(lam)))

    def score(ids: Ids) -> NDArray[Any]:
        return recency_weight * ranks(units.last[ids]) + freq_weight * ranks(units.uses[ids])

    return score


def _column(name: str) -> Callable[[Units, float | None], Key]:
    return lambda units, lam: lambda ids: getattr(units, name)[ids]


RANKED: dict[str, tuple[Callable[[Units, float | None], Key], ...]] = {
    "lru": (_column("last"),),
    "lfu": (_column("uses"), _column("last")),
    "fifo": (_column("entered"),),
    "priority": (_column("priority"), _column("last")),
    "score": (_score, _column("last")),
}
"""Every ranked policy's keys, made with the columns and λ, which only ``score`` reads."""


def make_ranked(policy: str, units: Units, lam: float | None) -> Ranked:
    """Return the order of a policy of ``RANKED``; InputError for a λ that ``score`` can't use."""
    keys = [make(units, lam) for make in RANKED[policy]]
    return Ranked(units, [*keys, lambda ids: -units.local[ids], lambda ids: ids])
