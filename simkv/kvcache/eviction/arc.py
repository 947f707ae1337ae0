"""Adaptive replacement (Megiddo and Modha, FAST'03): recency against frequency, by what was regretted.

Entries used once (T1) and more than once (T2), each with ghosts of what it lost (B1, B2). A ghost
that comes back says which of the two was too small, and moves the target size of T1. The target
is a real number and B1 is cut before a replacement, as in libCacheSim.
"""

from __future__ import annotations

from collections.abc import Hashable

from simkv.kvcache.eviction.base import E
from simkv.kvcache.eviction.ghosts import Ghosts
from simkv.kvcache.eviction.queued import Queued

_ONCE, _OFTEN = 1, 2


class Arc(Queued[E]):
    """Queue 1 is T1, queue 2 is T2."""

    __slots__ = ("_expected", "_ghosts", "_latest", "_target")

    def __init__(self, capacity_blocks: int | None = None) -> None:
        super().__init__(2, capacity_blocks)
        self._ghosts = (Ghosts(), Ghosts(), Ghosts())  # by queue
        self._target = 0.0
        self._expected: dict[Hashable, int] = {}
        """Ghosts that are coming, and of which queue they were."""
        self._latest = 0
        """The same of what is coming next; 0: no ghost."""

    def coming(self, key: Hashable) -> None:
        """Move the target where ``key`` is a ghost."""
        self._latest = self._regret(key)
        if self._latest:
            self._expected[key] = self._latest

    def _regret(self, key: Hashable) -> int:
        """Forget the ghost ``key`` and move the target towards its queue; return that queue, 0 for no ghost."""
        _, once, often = self._ghosts
        if key in once.members:
            self._target = min(self._target + max(often.blocks / once.blocks, 1), self.capacity_blocks)
            once.take(key)
            return _ONCE
        if key in often.members:
            self._target = max(self._target - max(once.blocks / often.blocks, 1), 0)
            often.take(key)
            return _OFTEN
        return 0

    def add(self, e: E) -> None:
        """Put what was used again, or regretted, into T2 and the rest into T1."""
        if e.queue:
            self._put(e, _OFTEN if e.uses > e.counted else e.queue)
            return
        key = e.key
        if key in self._expected:
            del self._expected[key]
            regretted = True
        else:
            regretted = self._regret(key) > 0
        self._latest = 0
        self._put(e, _OFTEN if regretted or e.uses > 1 else _ONCE)

    def victim(self) -> E | None:
        """Return the least recent of T1 where T1 is above its target, else of T2."""
        _, once, often = self._queues
        size, ghost_of = self._blocks[_ONCE], self._latest
        filled = not ghost_of and size >= self.capacity_blocks and not self._ghosts[_ONCE].blocks
        above = size > self._target or (size == self._target and ghost_of == _OFTEN)
        queue = once if once and (above or filled or not often) else often
        return next(iter(queue), None)

    def evicted(self, e: E) -> None:
        """Make ``e`` a ghost of its queue, unless T1 alone fills the cache."""
        if e.queue:
            self._lose(e.queue, e.key, e.blocks, self._blocks[_ONCE] + (e.blocks if e.queue == _ONCE else 0))
        e.queue = 0

    def trimmed(self, e: E, blocks: int, key: Hashable) -> None:
        """Make the end of ``e`` a ghost."""
        before = self._blocks[_ONCE]
        super().trimmed(e, blocks, key)
        self._lose(e.queue, key, blocks, before)

    def _lose(self, queue: int, key: Hashable, blocks: int, once_before: int) -> None:
        """Remember what ``queue`` lost; T1 had ``once_before`` blocks before that."""
        capacity, (_, once, often) = self.capacity_blocks, self._ghosts
        if not self._latest:
            if once_before + once.blocks >= capacity:
                if not once.blocks and queue == _ONCE:
                    return
                while once.blocks and once_before + once.blocks >= capacity:
                    once.drop_oldest()
            else:
                resident = once_before + self._blocks[_OFTEN] + (blocks if queue == _OFTEN else 0)
                while often.blocks and resident + once.blocks + often.blocks >= 2 * capacity:
                    often.drop_oldest()
        self._ghosts[queue].add(key, blocks)
