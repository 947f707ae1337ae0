"""What policies share that keep candidates in several queues, and entries' places in mind while they are pinned."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic

from simkv.kvcache.eviction.base import E


class Queued(Generic[E]):
    """Candidates in queues 1..n, each by recency; ``e.queue`` says in which, also while ``e`` is pinned.

    Sizes are in blocks of candidates. Without a given capacity it is the most that candidates
    ever were: known when it is first needed, since the first eviction finds the cache full.
    """

    __slots__ = ("_blocks", "_grows", "_queues", "capacity_blocks")
    needs_leaves = False
    any_order = True
    remembers = True

    def __init__(self, queues: int, capacity_blocks: int | None) -> None:
        self.capacity_blocks = capacity_blocks or 0
        self._grows = capacity_blocks is None
        self._queues: list[OrderedDict[E, None]] = [OrderedDict() for _ in range(queues + 1)]
        self._blocks = [0] * (queues + 1)

    def resize(self, capacity_blocks: int) -> None:
        """Go by another capacity from now on; entries keep their places."""
        self.capacity_blocks = capacity_blocks

    def _put(self, e: E, queue: int) -> None:
        """Append ``e`` to ``queue``, all its uses dealt with."""
        e.queue = queue
        e.counted = e.uses
        self._queues[queue][e] = None
        self._blocks[queue] += e.blocks
        if self._grows:
            self.capacity_blocks = max(self.capacity_blocks, sum(self._blocks))

    def discard(self, e: E) -> None:
        """Take ``e`` out of its queue, which it keeps in mind."""
        queue = e.queue
        del self._queues[queue][e]
        self._blocks[queue] -= e.blocks

    def evicted(self, e: E) -> None:
        """Let ``e`` have no place."""
        e.queue = 0

    def coming(self, key: Hashable) -> None:
        """Take no notice."""

    def trimmed(self, e: E, blocks: int, key: Hashable) -> None:
        """Make its queue smaller."""
        self._blocks[e.queue] -= blocks

    def split(self, e: E, upper: E) -> None:
        """Give ``upper`` the place of ``e``."""
        upper.queue = e.queue
        upper.counted = e.counted
        if e in self._queues[e.queue]:
            self._blocks[e.queue] -= upper.blocks

    def __len__(self) -> int:
        return sum(map(len, self._queues))
