"""Least frequently used first, the least recent of those."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic

from simkv.kvcache.eviction.base import E, Forgetful
from simkv.kvcache.eviction.counts import Counter


class UseClasses(Generic[E]):
    """Candidates by their count of uses, each class in order of recency."""

    __slots__ = ("counts", "members")

    def __init__(self) -> None:
        self.members: dict[float, OrderedDict[E, None]] = {}
        """Count → the candidates with it, least recent first; no class is empty."""
        self.counts: list[float] = []
        """The keys of ``members``, ascending."""

    def add(self, e: E, count: float) -> None:
        """Put ``e`` at the recent end of its class."""
        members = self.members.get(count)
        if members is None:
            members = self.members[count] = OrderedDict()
            insort(self.counts, count)
        members[e] = None

    def discard(self, e: E, count: float) -> None:
        """Take ``e`` out of its class; KeyError where it isn't in."""
        members = self.members[count]
        del members[e]
        if not members:
            del self.members[count]
            del self.counts[bisect_left(self.counts, count)]


class Counted(Forgetful[E]):
    """What policies share that go by use counts."""

    __slots__ = ("_classes", "_counter", "any_order", "remembers")

    def __init__(self, counter: Counter[E]) -> None:
        self._classes: UseClasses[E] = UseClasses()
        self._counter = counter
        self.any_order = self.remembers = counter.lives_on

    def evicted(self, e: E) -> None:
        """Let the counter know."""
        self._counter.evicted(e)

    def trimmed(self, e: E, blocks: int, key: Hashable) -> None:
        """Let the counter know."""
        self._counter.trimmed(e, key)

    def split(self, e: E, upper: E) -> None:
        """Let the counter know."""
        self._counter.split(e, upper)


class Lfu(Counted[E]):
    """The least recent candidate of the lowest class of use counts."""

    __slots__ = ("_size",)

    def __init__(self, counter: Counter[E]) -> None:
        super().__init__(counter)
        self._size = 0

    def add(self, e: E) -> None:
        """Make ``e`` the most recent candidate of its count."""
        self._classes.add(e, self._counter.take(e))
        self._size += 1

    def discard(self, e: E) -> None:
        """Forget candidate ``e``."""
        self._classes.discard(e, self._counter.taken(e))
        self._size -= 1

    def victim(self) -> E | None:
        """Return the least recent of the least used candidates."""
        if not self._size:
            return None
        return next(iter(self._classes.members[self._classes.counts[0]]))

    def __len__(self) -> int:
        return self._size
