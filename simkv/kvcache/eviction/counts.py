"""How uses are counted: since an entry came in, over all its lives, or with the old ones fading.

A count is taken when an entry becomes a candidate and stands until it is one no more.
"""

from __future__ import annotations

from collections.abc import Hashable
from math import log2
from typing import Generic, Literal, Protocol, TypeVar

from simkv.kvcache.eviction.base import E, Entry

E_contra = TypeVar("E_contra", bound=Entry, contravariant=True)
CountMode = Literal["in_cache", "lifetime", "decayed"]


DECAY_STEPS = 16
"""Decayed counts are told apart so many times in every doubling."""


class Counter(Protocol[E_contra]):
    """Counts of uses; higher is worth more."""

    lives_on: bool
    """Whether counts may grow towards the tails of a prefix, so that a head could be a victim."""

    def take(self, e: E_contra) -> float:
        """Return the count of ``e``, which is about to be a candidate."""

    def taken(self, e: E_contra) -> float:
        """Return the count of candidate ``e``."""

    def evicted(self, e: E_contra) -> None:
        """Note that ``e`` has left the cache."""

    def trimmed(self, e: E_contra, key: Hashable) -> None:
        """Note that the end of ``e``, from ``key`` on, has left the cache."""

    def split(self, e: E_contra, upper: E_contra) -> None:
        """Note that ``upper`` has been as much used as ``e``."""


class InCache(Generic[E]):
    """The uses since it came in: the entry has them."""

    __slots__ = ()
    lives_on = False

    def take(self, e: E) -> float:
        """Return its uses."""
        return e.uses

    taken = take

    def evicted(self, e: E) -> None:
        """Forget nothing: nothing was kept."""

    def trimmed(self, e: E, key: Hashable) -> None:
        """Take no notice."""

    def split(self, e: E, upper: E) -> None:
        """Take no notice."""


class _Levels(Generic[E]):
    """Counts that are kept for each entry."""

    __slots__ = ("_level",)
    lives_on = True

    def __init__(self) -> None:
        self._level: dict[E, float] = {}

    def taken(self, e: E) -> float:
        """Return the count when it became a candidate."""
        return self._level[e]

    def evicted(self, e: E) -> None:
        """Forget its count."""
        self._level.pop(e, None)
        e.counted = 0

    def trimmed(self, e: E, key: Hashable) -> None:
        """Take no notice."""

    def split(self, e: E, upper: E) -> None:
        """Give ``upper`` the count of ``e``, where it has one yet."""
        if e in self._level:
            self._level[upper] = self._level[e]
            upper.counted = e.counted


class Lifetime(_Levels[E]):
    """All uses of its content, those before earlier evictions too; memory grows with distinct content."""

    __slots__ = ("_past",)

    def __init__(self) -> None:
        super().__init__()
        self._past: dict[Hashable, float] = {}

    def take(self, e: E) -> float:
        """Return its uses, now and before."""
        before = self._level.get(e)
        if before is None:
            before = self._past.get(e.key, 0)
        level = self._level[e] = before + e.uses - e.counted
        e.counted = e.uses
        return level

    def evicted(self, e: E) -> None:
        """Keep its count for when it comes back."""
        if e in self._level:
            self._past[e.key] = self._level[e]
        super().evicted(e)

    def trimmed(self, e: E, key: Hashable) -> None:
        """Keep the count for that end, too."""
        self._past[key] = self._level[e]


class Decayed(_Levels[E]):
    """Uses since it came in, each worth half as much after every ``half_life_uses`` uses of anything.

    All counts fade alike, so their order stands still: kept is log2 of the sum of 2^(time of use / half life).
    Counts are taken in steps of 2^(1/16), 4 %: closer ones are equal, and the less recent goes first.
    """

    __slots__ = ("_half_life_uses", "_now")

    def __init__(self, half_life_uses: float) -> None:
        super().__init__()
        self._half_life_uses = half_life_uses
        self._now = 0

    def take(self, e: E) -> float:
        """Return its level, the uses since it was taken last added at this moment."""
        level = self._level.get(e)
        new = e.uses - e.counted
        if new > 0 or level is None:
            self._now += 1
            fresh = self._now / self._half_life_uses + log2(max(new, 1))
            level = fresh if level is None else _log2_sum(level, fresh)
            self._level[e] = level
            e.counted = e.uses
        return round(level * DECAY_STEPS)

    def taken(self, e: E) -> float:
        """Return the count when it became a candidate."""
        return round(self._level[e] * DECAY_STEPS)


def _log2_sum(a: float, b: float) -> float:
    """Return log2(2^a + 2^b)."""
    high, low = (a, b) if a > b else (b, a)
    gap = low - high
    return high + log2(1 + 2.0**gap) if gap > -64 else high
