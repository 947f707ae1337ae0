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

    __slots__ = ("_heap", "_item", "_live", "_serial")
    needs_leaves = True

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, int, E]] = []
        self._item: dict[E, tuple[int, int, int, E]] = {}  # the one in the heap that an entry goes by
        self._live: dict[E, None] = {}
        self._serial = 0

    def rank(self, e: E) -> tuple[int, int]:
        """Return the place of ``e``, which must not change while it is a candidate."""
        raise NotImplementedError

    def add(self, e: E) -> None:
        """Make ``e`` a candidate, in the place that its rank gives it."""
        self._live[e] = None
        first, second = self.rank(e)
        item = self._item.get(e)
        if item is not None and item[0] == first and item[1] == second:
            return
        self._serial += 1
        item = self._item[e] = (first, second, self._serial, e)
        heappush(self._heap, item)
        if len(self._heap) > 2 * len(self._live) + _SLACK:
            self._item = {e: self._item[e] for e in self._live}
            self._heap = list(self._item.values())
            heapify(self._heap)

    def discard(self, e: E) -> None:
        """Forget candidate ``e``; its heap item stays behind, and serves again if it comes back to the same place."""
        del self._live[e]

    def victim(self) -> E | None:
        """Return the candidate of the lowest rank."""
        heap, live, items = self._heap, self._live, self._item
        while heap:
            top = heap[0]
            e = top[3]
            current = items.get(e) is top
            if current and e in live:
                return e
            heappop(heap)
            if current:
                del items[e]
        return None

    def __len__(self) -> int:
        return len(self._live)
