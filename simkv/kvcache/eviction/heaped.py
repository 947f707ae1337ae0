"""Candidates in an order that each has from the start, whenever it is added: a heap."""

from __future__ import annotations

from heapq import heapify, heappop, heappush

from simkv.kvcache.eviction.base import E, Forgetful

_SLACK = 64
"""Stale heap items that are tolerated beyond one a candidate."""


class Heaped(Forgetful[E]):
    """The candidate of the lowest :meth:`rank` first; stale items are dropped when they surface.

    Parents may rank below their children, so only leaves may be offered.
    """

    __slots__ = ("_heap", "_live", "_serial")
    needs_leaves = True

    def __init__(self) -> None:
        self._heap: list[tuple[tuple[int, int], int, E]] = []
        self._live: dict[E, int] = {}  # the serial number of the candidate's valid heap item
        self._serial = 0

    def rank(self, e: E) -> tuple[int, int]:
        """Return the place of ``e``, which must not change while it is a candidate."""
        raise NotImplementedError

    def add(self, e: E) -> None:
        """Make ``e`` a candidate, in the place that its rank gives it."""
        self._serial += 1
        self._live[e] = self._serial
        heappush(self._heap, (self.rank(e), self._serial, e))
        if len(self._heap) > 2 * len(self._live) + _SLACK:
            self._heap = [item for item in self._heap if self._live.get(item[2]) == item[1]]
            heapify(self._heap)

    def discard(self, e: E) -> None:
        """Forget candidate ``e``; its heap item stays behind, stale."""
        del self._live[e]

    def victim(self) -> E | None:
        """Return the candidate of the lowest rank."""
        heap = self._heap
        while heap and self._live.get(heap[0][2]) != heap[0][1]:
            heappop(heap)
        return heap[0][2] if heap else None

    def __len__(self) -> int:
        return len(self._live)
