"""Least frequently used first, the least recent of those; counts since the entry came in."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import OrderedDict
from typing import Generic

from simkv.kvcache.eviction.base import E


class UseClasses(Generic[E]):
    """Candidates by their ``uses``, each class in order of recency."""

    __slots__ = ("counts", "members")

    def __init__(self) -> None:
        self.members: dict[int, OrderedDict[E, None]] = {}
        """``uses`` → the candidates with that count, least recent first; no class is empty."""
        self.counts: list[int] = []
        """The keys of ``members``, ascending."""

    def add(self, e: E) -> None:
        """Put ``e`` at the recent end of its class."""
        members = self.members.get(e.uses)
        if members is None:
            members = self.members[e.uses] = OrderedDict()
            insort(self.counts, e.uses)
        members[e] = None

    def discard(self, e: E) -> None:
        """Take ``e`` out of its class; KeyError where it isn't in."""
        members = self.members[e.uses]
        del members[e]
        if not members:
            del self.members[e.uses]
            del self.counts[bisect_left(self.counts, e.uses)]


class Lfu(Generic[E]):
    """The least recent candidate of the lowest class of use counts."""

    __slots__ = ("_classes", "_size")
    needs_leaves = False

    def __init__(self) -> None:
        self._classes: UseClasses[E] = UseClasses()
        self._size = 0

    def add(self, e: E) -> None:
        """Make ``e`` the most recent candidate of its count."""
        self._classes.add(e)
        self._size += 1

    def discard(self, e: E) -> None:
        """Forget candidate ``e``."""
        self._classes.discard(e)
        self._size -= 1

    def victim(self) -> E | None:
        """Return the least recent of the least used candidates."""
        if not self._size:
            return None
        return next(iter(self._classes.members[self._classes.counts[0]]))

    def __len__(self) -> int:
        return self._size
