"""Reference replays: unit blocks in a fixed order, no time and no sharing of a pass.

Every reference is a hit or a miss; a missed block is always inserted, and evictions make room
first (*forced insertion*: the incoming block is no candidate). This is how caches are compared
in the literature, so the counts can be held against other programs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from typing import Literal

from simkv.kvcache.eviction.base import DEFAULT_PRIORITY, EvictionPolicy

Order = Literal["forward", "reverse"]


class UnitBlock:
    """One block of a replay, as an eviction policy sees it."""

    __slots__ = ("counted", "inserted", "key", "last_use", "queue", "uses")
    blocks = 1
    depth = 0
    priority = DEFAULT_PRIORITY

    def __init__(self, key: int, now: int) -> None:
        self.key = key
        self.uses = 1
        self.inserted = self.last_use = now
        self.queue = self.counted = 0


def flatten(rows: Iterable[Sequence[int]], order: Order = "forward") -> list[int]:
    """Return the references of ``rows`` (block ids a request) in one list.

    ``reverse`` touches each request's last block first, so that tails are older than heads.
    """
    if order == "forward":
        return [block for row in rows for block in row]
    return [block for row in rows for block in reversed(row)]


def replay(references: Sequence[int], capacity: int, policy: EvictionPolicy[UnitBlock]) -> int:
    """Return the hits of ``references`` in a cache of ``capacity`` blocks; fills ``policy``."""
    if capacity <= 0:
        return 0
    resident: dict[int, UnitBlock] = {}
    get, add, discard, victim = resident.get, policy.add, policy.discard, policy.victim
    evicted, coming = policy.evicted, policy.coming if policy.remembers else None
    room, misses = capacity, 0
    for now, key in enumerate(references):
        block = get(key)
        if block is not None:
            discard(block)
            block.uses += 1
            block.last_use = now
        else:
            misses += 1
            if coming is not None:
                coming(key)
            if room:
                room -= 1
            elif (out := victim()) is not None:
                discard(out)
                evicted(out)
                del resident[out.key]
            block = resident[key] = UnitBlock(key, now)
        add(block)
    return len(references) - misses


def belady(references: Sequence[int], capacity: int) -> int:
    """Return the most hits that any policy can have with forced insertion.

    Evicts the block whose next use is farthest. A resident block is known by the position of
    its next use, which no other block has; blocks that are never used again only count.
    """
    if capacity <= 0:
        return 0
    next_use = _next_uses(references)
    cached = bytearray(len(references))  # 1 where the reference finds its block
    farthest: list[int] = []  # −next use; what has passed sinks and never surfaces
    resident = dead = hits = 0
    for now, following in enumerate(next_use):
        if cached[now]:
            hits += 1
        elif resident < capacity:
            resident += 1
        elif dead:
            dead -= 1
        else:
            cached[-heappop(farthest)] = 0
        if following:
            cached[following] = 1
            heappush(farthest, -following)
        else:
            dead += 1
    return hits


def _next_uses(references: Sequence[int]) -> list[int]:
    """Return for each position where the same block is used next, 0 for never."""
    next_use = [0] * len(references)
    seen: dict[int, int] = {}
    for now in range(len(references) - 1, -1, -1):
        key = references[now]
        next_use[now] = seen.get(key, 0)
        seen[key] = now
    return next_use
