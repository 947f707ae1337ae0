"""Segmented LRU: each use lifts an entry by a segment, segments that overflow let it sink again.

As in libCacheSim by default: four segments of a quarter of the capacity each; what comes in goes
to the lowest segment with room (the higher ones serve as plain room until they are earned), and
evictions take the least recent of the lowest segment that isn't empty.
"""

from __future__ import annotations

from simkv.kvcache.eviction.base import E
from simkv.kvcache.eviction.queued import Queued

SEGMENTS = 4


class Slru(Queued[E]):
    """Queue ``k`` is the ``k``-th segment from the bottom."""

    __slots__ = ()

    def __init__(self, capacity_blocks: int | None = None) -> None:
        super().__init__(SEGMENTS, capacity_blocks)

    def add(self, e: E) -> None:
        """Lift ``e`` by a segment a use, or let it in."""
        segment = e.queue
        if segment:
            segment += e.uses - e.counted
        else:
            segment = self._with_room(e.blocks) + e.uses - 1
        if segment > SEGMENTS:
            segment = SEGMENTS
        self._put(e, segment)
        if segment > 1 and self._blocks[segment] > self.capacity_blocks // SEGMENTS:
            self._sink(segment)

    def _with_room(self, blocks: int) -> int:
        """Return the lowest segment that has room for ``blocks``, or the lowest of all."""
        most = self.capacity_blocks // SEGMENTS - blocks
        for segment in range(1, SEGMENTS + 1):
            if self._blocks[segment] <= most:
                return segment
        return 1

    def _sink(self, segment: int) -> None:
        """Let the least recent of segments that overflow sink, from ``segment`` down."""
        most, sizes, queues = self.capacity_blocks // SEGMENTS, self._blocks, self._queues
        for above in range(segment, 1, -1):
            while sizes[above] > most:
                e = queues[above].popitem(last=False)[0]
                sizes[above] -= e.blocks
                e.queue = above - 1
                queues[above - 1][e] = None
                sizes[above - 1] += e.blocks

    def victim(self) -> E | None:
        """Return the least recent of the lowest segment that isn't empty."""
        for queue in self._queues:
            if queue:
                return next(iter(queue))
        return None
