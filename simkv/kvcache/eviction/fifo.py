"""First in, first out: the oldest insertion first, whatever was used since."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Generic

from simkv.kvcache.eviction.base import E

_SLACK = 64
"""Stale heap items that are tolerated beyond one a candidate."""


class Fifo(Generic[E]):
    """A heap by ``(inserted, deeper first)`` whose stale items are dropped when they surface.

    A parent is older than its children, so only leaves may be offered.
    """

    __slots__ = ("_heap", "_live", "_serial")
    needs_leaves = True

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, int, E]] = []
        self._live: dict[E, int] = {}  # the serial number of the candidate's valid heap item
        self._serial = 0

    def add(self, e: E) -> None:
        """Make ``e`` a candidate, in the place that its insertion gives it."""
        self._serial += 1
        self._live[e] = self._serial
        heappush(self._heap, (e.inserted, -e.depth, self._serial, e))
        if len(self._heap) > 2 * len(self._live) + _SLACK:
            self._heap = [item for item in self._heap if self._live.get(item[3]) == item[2]]
            heapify(self._heap)

    def discard(self, e: E) -> None:
        """Forget candidate ``e``; its heap item stays behind, stale."""
        del self._live[e]

    def victim(self) -> E | None:
        """Return the candidate that entered the cache first."""
        heap = self._heap
        while heap and self._live.get(heap[0][3]) != heap[0][2]:
            heappop(heap)
        return heap[0][3] if heap else None

    def __len__(self) -> int:
        return len(self._live)
